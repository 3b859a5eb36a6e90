package doctor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who gets a processor late finds the context ended and the results there.
func TestWhatHasEndedIsTaken(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results := make(chan int, 1)
	for range 100 {
		results <- 1
		_, ok := Await(ctx, results)
		require.True(t, ok)
	}
	_, ok := Await(ctx, results)
	assert.False(t, ok)
}
