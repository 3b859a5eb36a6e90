package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The receiver takes the host's name and id from files of its root, and follows
// no link out of it.
func TestRootHoldsTheNameOfThisMachine(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "demo")
	require.NoError(t, os.MkdirAll(directory, 0o755))
	left := filepath.Join(directory, "left")
	require.NoError(t, os.WriteFile(left, nil, 0o600))

	root, err := prepare(directory)
	require.NoError(t, err)
	assert.NoFileExists(t, left)
	for _, name := range []string{"hostname", "machine-id"} {
		want, err := os.ReadFile(filepath.Join("/etc", name))
		copied := filepath.Join(root, "etc", name)
		if err != nil {
			assert.NoFileExists(t, copied)
			continue
		}
		got, err := os.ReadFile(copied)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
		info, err := os.Lstat(copied)
		require.NoError(t, err)
		assert.Zero(t, info.Mode()&fs.ModeSymlink, "%s is a link", copied)
	}
}

func TestCopyIfThere(t *testing.T) {
	directory := t.TempDir()
	from, to := filepath.Join(directory, "from"), filepath.Join(directory, "to")
	require.NoError(t, copyIfThere(from, to))
	assert.NoFileExists(t, to)
	require.NoError(t, os.WriteFile(from, []byte("node\n"), 0o600))
	require.NoError(t, copyIfThere(from, to))
	content, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, "node\n", string(content))
}

// The demonstration's configuration takes the device that its job uses.
func TestConfigurationTakesTheDevice(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("../..", configPath))
	require.NoError(t, err)
	assert.Contains(t, string(text), "devices: {include: [{strict: "+deviceName+"}]}")
	assert.Contains(t, workloadArguments(0, "/"), deviceName)
}
