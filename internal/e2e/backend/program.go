// Package backend runs Jaeger and Prometheus for tests, on free ports of the
// loopback interface, and asks them what arrived. internal/e2e/build.sh builds both.
package backend

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const pollInterval = 50 * time.Millisecond

// start runs a program of bin/tools until the end of the test, at the latest, and
// returns when its page of that URL is there.
func start(t *testing.T, directory, name, ready string, arguments ...string) *launch.Child {
	t.Helper()
	log := filepath.Join(directory, name+".log")
	child, err := launch.Start(t.Context(), log, testbed.Built(t, "tools/"+name, "backends"), arguments...)
	require.NoError(t, err)
	t.Cleanup(func() {
		child.Stop()
		assert.NoError(t, child.Wait())
	})
	for deadline := time.Now().Add(testbed.Patience); !answers(ready); time.Sleep(pollInterval) {
		if child.Ended() {
			require.NoError(t, child.Wait(), "%s ended before it was ready", name)
			t.Fatalf("%s ended before it was ready; its log is %s", name, log)
		}
		require.True(t, time.Now().Before(deadline), "%s was not ready within %v; its log is %s", name, testbed.Patience, log)
	}
	return child
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
