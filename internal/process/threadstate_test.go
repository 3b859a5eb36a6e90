package process

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestThreadState(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, "7/task", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	stat := func(state, threads string) string {
		return "8 (a) R (b) " + state + " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 " + threads + " 18 1234 20\n"
	}
	write("8/stat", strings.TrimSpace(stat("S", "17"))+" 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 5 37\n")
	write("8/wchan", "hrtimer_nanosleep")
	write("9/stat", stat("R", "1"))
	write("9/wchan", "0")
	write("10/stat", stat("T", "x"))
	write("11/stat", "11 (a")
	reader := NewReader(root)
	for tid, want := range map[int]ThreadState{
		8:  {Name: "a) R (b", State: 'S', CPU: 5, Wait: "hrtimer_nanosleep"},
		9:  {Name: "a) R (b", State: 'R', CPU: -1, Alone: true},
		10: {Name: "a) R (b", State: 'T', CPU: -1},
	} {
		got, err := reader.ThreadState(7, tid)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := reader.ThreadState(7, 11)
	assert.ErrorContains(t, err, "no comm")
	for _, ids := range [][2]int{{7, 12}, {8, 8}} {
		_, err := reader.ThreadState(ids[0], ids[1])
		assert.ErrorIs(t, err, ErrGone)
	}
}

func TestThreadStateOfThisThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	got, err := NewReader("/proc").ThreadState(os.Getpid(), unix.Gettid())
	require.NoError(t, err)
	assert.EqualValues(t, 'R', got.State)
	assert.NotEmpty(t, got.Name)
	assert.Empty(t, got.Wait)
	assert.GreaterOrEqual(t, got.CPU, 0)
}
