package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLoop runs the measured loop on the simulated provider. It checks that it
// counts right, not how fast it is: nothing is observed here on purpose.
func TestLoop(t *testing.T) {
	for _, tool := range []string{"gcc", "make", "strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the loop cannot be built: %v", err)
		}
	}
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("the loop cannot be built: no infiniband/verbs.h; install libibverbs-dev")
	}
	bin := t.TempDir()
	for directory, target := range map[string]string{"loop": "bench-loop", "../verbsim": "libverbsim-rdmav34.so"} {
		out, err := exec.Command("make", "-C", directory, "BIN="+bin, filepath.Join(bin, target)).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "bench-loop"),
		"--provider", filepath.Join(bin, "libverbsim-rdmav34.so"), "--cell-ms", "1", "--empty", "0,10,100,1000").Output()
	require.NoError(t, err, string(out))
	r, err := parseLoop(out)
	require.NoError(t, err)
	assert.Equal(t, r.Posts, r.Completions, "every post completes")
	// One round of each of the five numbers at least, of 128 completions.
	assert.GreaterOrEqual(t, r.Completions, uint64(5*128))
	assert.GreaterOrEqual(t, r.Polls, uint64(128*(1+11+101+1001+1)))
	for n, ns := range r.PollNs {
		assert.Positive(t, ns, n)
	}
	assert.Positive(t, r.PostNs)
}
