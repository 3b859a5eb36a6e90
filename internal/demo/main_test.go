package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLengthFrom(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 20 * time.Second, "5": 5 * time.Second, "60": time.Minute} {
		got, err := lengthFrom(text)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"0", "-5", "1m", "9999999"} {
		_, err := lengthFrom(text)
		assert.ErrorContains(t, err, "DEMO_SECONDS")
	}
}
