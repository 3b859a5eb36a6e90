package fabric

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// idleTree is a sysfs with the idle states of CPU 3: name, latency and usage.
func idleTree(t *testing.T, states ...[3]string) *Reader {
	t.Helper()
	root := t.TempDir()
	for i, state := range states {
		path := filepath.Join(root, "devices/system/cpu/cpu3/cpuidle/state"+strconv.Itoa(i))
		require.NoError(t, os.MkdirAll(path, 0o755))
		for j, name := range []string{"name", "latency", "usage"} {
			require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(state[j]+"\n"), 0o600))
		}
	}
	return NewReader(root)
}

func TestIdleStates(t *testing.T) {
	reader := idleTree(t, [3]string{"POLL", "0", "7"}, [3]string{"C6", "133", "42"})
	states, err := reader.IdleStates(3)
	require.NoError(t, err)
	assert.Equal(t, []IdleState{{Name: "POLL", Entered: 7}, {Name: "C6", Latency: 133 * time.Microsecond, Entered: 42}}, states)

	states, err = reader.IdleStates(4)
	require.NoError(t, err, "a CPU without any")
	assert.Empty(t, states)

	for _, wrong := range [][3]string{{"C1", "x", "1"}, {"C1", "1", "-1"}, {"C1", "18446744073709551615", "1"}} {
		_, err := idleTree(t, wrong).IdleStates(3)
		assert.ErrorContains(t, err, "not numbers")
	}
}
