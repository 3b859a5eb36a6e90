package provider

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process whose maps cannot be read for ever, as from a pipe that nobody writes
// to, does not hide the others, and holds up one goroutine.
func TestFinderPassesOverWhatHangs(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": testVerbs()})
	for pid := 1; pid <= 3; pid++ {
		r.process(pid, root, r.maps(root+"/v.so", "/v.so"))
	}
	pipe := filepath.Join(r.proc, "2", "maps")
	require.NoError(t, os.Remove(pipe))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))

	var running atomic.Int32
	f := r.finder().WithSpawn(func(look func()) {
		running.Add(1)
		go func() {
			defer running.Add(-1)
			look()
		}()
	})
	f.patience = 20 * time.Millisecond
	for range 3 {
		found, errs := f.All(t.Context())
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], ErrHangs)
		require.ErrorContains(t, errs[0], "the memory of process 2,")
		assert.Equal(t, []string{"/v.so verbs"}, names(found))
		_, err := f.Process(2)
		require.ErrorIs(t, err, ErrHangs)
		_, err = f.Code(2)
		require.ErrorIs(t, err, ErrHangs)
	}
	require.Eventually(t, func() bool { return running.Load() == 1 }, 10*time.Second, time.Millisecond)

	require.NoError(t, os.WriteFile(pipe, []byte(r.maps(root+"/v.so", "/v.so")), 0o600))
	require.Eventually(t, func() bool { return running.Load() == 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, os.Remove(pipe))
	require.Eventually(t, func() bool {
		_, err := f.Process(2)
		return err != nil && len(f.Hanging()) == 0
	}, 10*time.Second, time.Millisecond)
	_, err := f.Process(2)
	require.ErrorIs(t, err, fs.ErrNotExist, "it is looked at again")
}

// Of a process with files on a file system that hangs, those on others are found
// all the same; and the next processes are not held up at all.
func TestFileSystemThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder(t.TempDir())
		server := make(chan struct{})
		var waiting atomic.Int32
		work := func(l *look) ([]File, error) {
			var found []File
			for device := range uint64(3) {
				if f.reach(l, device+1) != nil {
					continue
				}
				if device == 1 {
					waiting.Add(1)
					<-server
				}
				found = append(found, File{ID: FileID{Device: device + 1}})
			}
			return found, nil
		}
		for pid := 1; pid <= 100; pid++ {
			began := time.Now()
			found, err := patiently(f, obstacle{pid: pid}, work)
			require.NoError(t, err)
			require.Len(t, found, 2)
			if pid > 1 {
				require.Zero(t, time.Since(began))
			}
		}
		assert.EqualValues(t, 1, waiting.Load(), "goroutines wait for the server")
		close(server)
		synctest.Wait()
		found, err := patiently(f, obstacle{pid: 1}, work)
		require.NoError(t, err)
		assert.Len(t, found, 3)
	})
}

// What takes long and makes progress, or only computes, does not hang.
func TestSlowLookDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder(t.TempDir())
		found, err := patiently(f, obstacle{pid: 1}, func(l *look) ([]File, error) {
			for range 10 {
				l.enter(obstacle{device: 1})
				time.Sleep(patience - time.Millisecond)
			}
			l.enter(nowhere)
			time.Sleep(10 * patience)
			return []File{{}}, nil
		})
		require.NoError(t, err)
		assert.Len(t, found, 1)
		assert.Empty(t, f.Hanging())
	})
}

// One goroutine reads a file that many use; the others give up with it.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder(t.TempDir())
		server := make(chan struct{})
		var reading, gaveUp, had atomic.Int32
		read := func(l *look) ([]File, error) {
			release, err := f.claim(l, inodeKey{device: 1}, obstacle{device: 1})
			if err != nil {
				gaveUp.Add(1)
				return nil, err
			}
			defer release()
			reading.Add(1)
			<-server
			had.Add(1)
			return nil, nil
		}
		for pid := range 10 {
			go func() { _, _ = patiently(f, obstacle{pid: pid + 1}, read) }()
		}
		time.Sleep(5 * patience)
		assert.EqualValues(t, 1, reading.Load())
		assert.EqualValues(t, 0, had.Load())
		assert.Positive(t, gaveUp.Load())
		close(server)
		synctest.Wait()
		assert.Empty(t, f.claimed)
		_, err := patiently(f, obstacle{pid: 1}, read)
		require.NoError(t, err)
	})
}

// A file whose reading does not come to an end holds up who reads it, and what is
// done with what was read does not.
func TestReadingFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder(t.TempDir())
		server := make(chan struct{})
		read := func(file io.ReaderAt, then time.Duration) error {
			_, err := patiently(f, obstacle{pid: 1}, func(l *look) (int, error) {
				n, err := readingFile{file, l, obstacle{device: 1}}.ReadAt(make([]byte, 1), 0)
				time.Sleep(then)
				return n, err
			})
			return err
		}
		require.NoError(t, read(strings.NewReader("text"), 10*patience))
		require.ErrorIs(t, read(hangingFile(server), 0), ErrHangs)
		assert.Equal(t, []string{obstacle{device: 1}.String()}, f.Hanging())
		close(server)
		synctest.Wait()
		assert.Empty(t, f.Hanging())
	})
}

type hangingFile chan struct{}

func (f hangingFile) ReadAt([]byte, int64) (int, error) {
	<-f
	return 0, io.EOF
}
