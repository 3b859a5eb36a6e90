package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      command
	}{
		{nil, commandRun},
		{[]string{"check"}, commandCheck},
		{[]string{"-h"}, commandHelp},
		{[]string{"--help"}, commandHelp},
	} {
		got, err := parse(test.arguments)
		assert.NoError(t, err)
		assert.Equal(t, test.want, got, test.arguments)
	}
	for _, arguments := range [][]string{{"chekc"}, {"--seconds", "5"}, {"check", "check"}, {""}} {
		_, err := parse(arguments)
		assert.ErrorContains(t, err, "usage: demo [check]")
		assert.Equal(t, exitUsage, status(err), arguments)
	}
	assert.Equal(t, exitFailed, status(errors.New("any")))
}

// What is not known must not run: a run empties out/demo.
func TestUnknownArgumentRunsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	kept := inOut("kept")
	require.NoError(t, os.MkdirAll(outDirectory, 0o755))
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	assert.ErrorIs(t, run(t.Context(), []string{"chekc"}, io.Discard), errUsage)

	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--help"}, &out))
	assert.Equal(t, usage, out.String())
	assert.FileExists(t, kept)
}

func TestInterruptIsSaidAsSuch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.Equal(t, "why", message(ctx, errors.New("why")))
	cancel()
	assert.Equal(t, "interrupted", message(ctx, ctx.Err()))
	assert.Equal(t, "interrupted", message(ctx, errors.New("verbsim: signal: killed")))
}
