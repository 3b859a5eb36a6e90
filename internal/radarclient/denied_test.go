package radarclient

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who is denied reads which group to be in, where one would let them in.
func TestWhoMay(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files to any group")
	}
	const noName = 4_242_424
	for name, test := range map[string]struct {
		group int
		mode  fs.FileMode
		says  string
	}{
		"group":         {noName, 0o660, "be root or in the group 4242424, that of the socket, which has no name here"},
		"group of root": {0, 0o660, "be root: the group of the socket is root. Group= in the service of the collector lets another one in"},
		"closed to it":  {noName, 0o640, "be root: the socket is not open to a group"},
	} {
		path := filepath.Join(t.TempDir(), "radar.sock")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chown(path, -1, test.group))
		require.NoError(t, os.Chmod(path, test.mode))
		assert.Equal(t, test.says, whoMay(path), name)
	}
	assert.Equal(t, "be root", whoMay(filepath.Join(t.TempDir(), "gone.sock")))
}

func TestGroupsHaveNames(t *testing.T) {
	assert.Equal(t, "be root or a member of the group root, that of the socket (usermod -aG root USER, and log in again)", memberOf(0, "the socket"))
}
