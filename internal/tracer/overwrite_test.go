package tracer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// openFile makes a file and returns it open for reading, with its identity.
func openFile(t *testing.T, name string) (string, *os.File, provider.FileID) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	open, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = open.Close() })
	var stat unix.Stat_t
	require.NoError(t, unix.Fstat(int(open.Fd()), &stat))
	return path, open, provider.FileID{Device: stat.Dev, Inode: stat.Ino, Size: stat.Size, Modified: stat.Mtim.Nano()}
}

// startWatch runs a watch and returns what it tells of.
func startWatch(t *testing.T) (*writeWatch, <-chan fileKey) {
	t.Helper()
	w, err := newWriteWatch()
	require.NoError(t, err)
	told, ended := make(chan fileKey, 100), make(chan error)
	go func() { ended <- w.run(func(k fileKey) { told <- k }) }()
	t.Cleanup(func() {
		require.NoError(t, w.close())
		require.NoError(t, <-ended)
	})
	return w, told
}

func TestFilesThatAreWrittenTo(t *testing.T) {
	w, told := startWatch(t)
	path, open, id := openFile(t, "written")
	other, otherOpen, otherID := openFile(t, "left")
	_, err := w.watch(open, id)
	require.NoError(t, err)
	number, err := w.watch(otherOpen, otherID)
	require.NoError(t, err)
	w.forget(number, keyOf(otherID))

	require.NoError(t, os.WriteFile(other, []byte("nobody looks"), 0o600))
	require.NoError(t, os.Rename(other, path+".new"), "replaced by renaming")
	require.NoError(t, os.WriteFile(path, []byte("after"), 0o600))
	select {
	case key := <-told:
		assert.Equal(t, keyOf(id), key)
	case <-time.After(time.Minute):
		t.Fatal("nothing was told")
	}
}

func TestOneInodeOfTwoPaths(t *testing.T) {
	w, told := startWatch(t)
	path, open, id := openFile(t, "shared")
	second := id
	second.Device++ // As through another overlay.
	number, err := w.watch(open, id)
	require.NoError(t, err)
	_, err = w.watch(open, second)
	require.NoError(t, err)
	w.forget(number, keyOf(id))

	require.NoError(t, os.WriteFile(path, []byte("after"), 0o600))
	assert.Equal(t, keyOf(second), <-told)
}

func TestWrittenBeforeItIsWatched(t *testing.T) {
	w, _ := startWatch(t)
	path, open, id := openFile(t, "early")
	require.NoError(t, os.WriteFile(path, []byte("longer than before"), 0o600))
	_, err := w.watch(open, id)
	require.ErrorIs(t, err, provider.ErrChanged)
	assert.Empty(t, w.keys)
}

func TestLostEventsMeanAllFiles(t *testing.T) {
	w, _ := startWatch(t)
	_, open, id := openFile(t, "one")
	_, err := w.watch(open, id)
	require.NoError(t, err)
	overflow := make([]byte, unix.SizeofInotifyEvent)
	for i := range 4 {
		overflow[i] = 0xff
	}
	overflow[4], overflow[5] = unix.IN_Q_OVERFLOW&0xff, unix.IN_Q_OVERFLOW>>8
	assert.Equal(t, []fileKey{keyOf(id)}, w.writtenIn(overflow))
	assert.Empty(t, w.writtenIn(overflow[:10]), "an event in part")
}
