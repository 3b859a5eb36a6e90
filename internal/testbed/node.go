package testbed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// NodeName is the host name of a Node.
const NodeName = "gpu-017"

// Node is a directory that the collector takes for the root of its host: this
// machine's processes, and a sysfs in which the workload describes its device.
func Node(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"sys", "etc"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, name), 0o755))
	}
	require.NoError(t, os.Symlink("/proc", filepath.Join(root, "proc")))
	require.NoError(t, os.Symlink("/sys/devices", filepath.Join(root, "sys/devices")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/hostname"), []byte(NodeName+"\n"), 0o644))
	return root
}
