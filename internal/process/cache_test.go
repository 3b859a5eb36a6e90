package process

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// incarnation is program n of the process of the tests that has the PID.
func incarnation(pid, n int) verbs.ProcessID {
	started := startedAt(100, n)
	if pid == 99 {
		started = startedAt(7000, n) // As in testdata/podman-v2.
	}
	started.TGID = uint32(pid)
	return started
}

// startedAt is program n of a process 7 that started at that time.
func startedAt(ticks, n int) verbs.ProcessID {
	return verbs.ProcessID{TGID: 7, Incarnation: uint64(ticks)*uint64(tick) + uint64(n)}
}

func TestCacheOutlivesProcess(t *testing.T) {
	root, dir := newTree(t, 7, map[string]string{"stat": statLine(100, 1), "environ": "OTEL_SERVICE_NAME=first\x00"})
	cache := NewCache(NewReader(root), 10)
	facts, err := cache.Facts(incarnation(7, 1))
	require.NoError(t, err)
	assert.Equal(t, "first", facts.ServiceName)

	require.NoError(t, os.RemoveAll(dir))
	again, err := cache.Facts(incarnation(7, 1))
	require.NoError(t, err)
	assert.Equal(t, facts, again)
}

func TestCacheKeepsIncarnationsApart(t *testing.T) {
	root, dir := newTree(t, 7, map[string]string{"stat": statLine(100, 1), "environ": "OTEL_SERVICE_NAME=first\x00"})
	cache := NewCache(NewReader(root), 10)
	_, err := cache.Facts(incarnation(7, 1))
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "environ"), []byte("OTEL_SERVICE_NAME=second\x00"), 0o644))
	for n, want := range map[int]string{1: "first", 2: "second"} {
		facts, err := cache.Facts(incarnation(7, n))
		require.NoError(t, err)
		assert.Equal(t, want, facts.ServiceName)
	}
}

// A process that had gone when it was asked for must not get the facts of the
// one that has its PID later.
func TestCacheRemembersThatProcessWasGone(t *testing.T) {
	root, _ := newTree(t, 7, map[string]string{"stat": statLine(100, 1), "environ": "OTEL_SERVICE_NAME=other\x00"})
	cache := NewCache(NewReader(root), 10)
	_, err := cache.Facts(incarnation(8, 1))
	require.ErrorIs(t, err, ErrGone)
	require.NoError(t, os.Rename(filepath.Join(root, "7"), filepath.Join(root, "8")))
	_, err = cache.Facts(incarnation(8, 1))
	require.ErrorIs(t, err, ErrGone)
	facts, err := cache.Facts(incarnation(8, 2))
	require.NoError(t, err)
	assert.Equal(t, "other", facts.ServiceName)
}

// A process may end before anybody asks for its facts, and another one start
// under its PID.
func TestCacheGivesNoStrangersFacts(t *testing.T) {
	root, dir := newTree(t, 7, map[string]string{"stat": statLine(100, 1), "environ": "OTEL_SERVICE_NAME=first\x00"})
	cache := NewCache(NewReader(root), 10)
	_, err := cache.Facts(startedAt(100, 1))
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(statLine(5000, 1)), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "environ"), []byte("OTEL_SERVICE_NAME=stranger\x00"), 0o644))
	for _, late := range []verbs.ProcessID{startedAt(100, 2), startedAt(4999, 1), startedAt(5002, 1)} {
		facts, err := cache.Facts(late)
		require.ErrorIs(t, err, ErrGone)
		assert.Equal(t, Facts{}, facts)
	}
	facts, err := cache.Facts(startedAt(100, 1))
	require.NoError(t, err, "what is known stays")
	assert.Equal(t, "first", facts.ServiceName)
	facts, err = cache.Facts(startedAt(5000, int(tick)-1))
	require.NoError(t, err)
	assert.Equal(t, "stranger", facts.ServiceName)
}

// TestStartedAs: the number of the exec may lift an incarnation into the next
// tick, and the kernel cuts the start time to whole ticks.
func TestStartedAs(t *testing.T) {
	for ns, want := range map[uint64]bool{
		999_999_999: false, 1_000_000_000: true, 1_009_999_999: true,
		1_010_000_005: true, 1_019_999_999: true, 1_020_000_000: false, 0: false,
	} {
		assert.Equal(t, want, startedAs(verbs.ProcessID{TGID: 7, Incarnation: ns}, 100), "%d ns", ns)
	}
}

func TestCacheTriesOtherFailuresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := NewCache(NewReader("testdata/podman-v2"), 10)
		reads := 0
		read := cache.read
		cache.read = func(int) (Facts, error) {
			reads++
			return Facts{}, syscall.EMFILE
		}
		for range 10 {
			_, err := cache.Facts(incarnation(99, 1))
			require.ErrorIs(t, err, syscall.EMFILE)
		}
		synctest.Wait()
		assert.Equal(t, 1, reads, "not at once")
		cache.read = read
		time.Sleep(failureAge + time.Second)
		cache.Capture(incarnation(99, 1), "")
		synctest.Wait()
		facts, err := cache.Facts(incarnation(99, 1))
		require.NoError(t, err)
		assert.Equal(t, "perf test", facts.ServiceName)
	})
}

func TestCacheIsBounded(t *testing.T) {
	cache := NewCache(NewReader("testdata/podman-v2"), 3)
	var reads atomic.Int32
	read := cache.read
	cache.read = func(pid int) (Facts, error) {
		reads.Add(1)
		return read(pid)
	}
	for n := range 100 {
		_, err := cache.Facts(incarnation(99, n))
		require.NoError(t, err)
		_, err = cache.Facts(incarnation(99, 0))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(cache.entries), 3)
		assert.Equal(t, len(cache.entries), cache.recent.Len())
	}
	assert.Equal(t, int32(100), reads.Load(), "the one in use stays")
	assert.NotContains(t, cache.entries, incarnation(99, 50))
}

// hanging makes the reads of one process block as the kernel would, until the
// function that it returns is called.
func hanging(cache *Cache, pid int) (release func()) {
	gate := make(chan struct{})
	read := cache.read
	cache.read = func(asked int) (Facts, error) {
		if asked == pid {
			<-gate
		}
		return read(asked)
	}
	return func() { close(gate) }
}

func TestCacheDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := NewCache(NewReader("testdata/podman-v2"), 10)
		release := hanging(cache, 99)

		cache.Capture(incarnation(99, 1), "")
		begin := time.Now()
		_, err := cache.Facts(incarnation(99, 1))
		require.ErrorIs(t, err, ErrBusy)
		assert.Equal(t, patience, time.Since(begin))

		begin = time.Now()
		_, err = cache.Facts(incarnation(99, 1))
		require.ErrorIs(t, err, ErrBusy)
		assert.Zero(t, time.Since(begin), "one process is waited for once")

		_, err = cache.Facts(incarnation(8, 1))
		require.ErrorIs(t, err, ErrGone, "others are not held up")
		assert.Zero(t, time.Since(begin))

		release()
		synctest.Wait()
		facts, err := cache.Facts(incarnation(99, 1))
		require.NoError(t, err)
		assert.Equal(t, "perf test", facts.ServiceName)
	})
}

// While every reader hangs, a process that cannot be read is waited for once, not
// whenever it is asked for: a collection asks for hundreds, one after the other.
func TestCacheGivesUpWhenEveryReadHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := NewCache(NewReader("testdata/podman-v2"), 1000)
		release := hanging(cache, 99)
		for n := range maxReading {
			cache.Capture(incarnation(99, n), "")
		}
		synctest.Wait()
		const others = 200
		for n := range others {
			cache.Capture(incarnation(100+n, 1), "")
		}
		collect := func() time.Duration {
			begin := time.Now()
			for n := range others {
				_, err := cache.Facts(incarnation(100+n, 1))
				require.ErrorIs(t, err, ErrBusy)
			}
			return time.Since(begin)
		}
		assert.Equal(t, patience, collect())
		for range 20 {
			time.Sleep(10 * time.Second)
			assert.Zero(t, collect())
		}
		release()
		time.Sleep(failureAge + time.Second)
		_, err := cache.Facts(incarnation(99, 0))
		require.NoError(t, err)
		cache.Capture(incarnation(100, 1), "")
		synctest.Wait()
		_, err = cache.Facts(incarnation(100, 1))
		require.ErrorIs(t, err, ErrGone, "it is read again")
	})
}

func TestCacheInParallel(t *testing.T) {
	cache := NewCache(NewReader("testdata/podman-v2"), 4)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := range 50 {
				id := incarnation(99, (worker+n)%6)
				facts, err := cache.Facts(id)
				assert.NoError(t, err)
				assert.Equal(t, 99, facts.PID)
			}
		})
	}
	all.Wait()
}

// The process may be gone before anything of it was read; what the kernel calls
// it is known all the same, whichever comes first.
func TestNameOfProcessThatIsGone(t *testing.T) {
	for _, first := range []string{"name", "facts"} {
		cache := NewCache(NewReader(t.TempDir()), 4)
		id := incarnation(7, 1)
		if first == "facts" {
			if _, err := cache.Facts(id); !errors.Is(err, ErrGone) {
				t.Fatalf("facts of nobody: %v", err)
			}
		}
		cache.Capture(id, "perf\x1btest")
		cache.Capture(id, "")
		facts, err := cache.Facts(id)
		if !errors.Is(err, ErrIncomplete) || !errors.Is(err, ErrGone) || facts.ServiceName != "perf\uFFFDtest" {
			t.Errorf("%s first: %+v, %v", first, facts, err)
		}
	}
}

// What the kernel calls a process outlives the failure to read it.
func TestNameOfProcessThatIsGoneWhenItIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := NewCache(NewReader(t.TempDir()), 4)
		gone := cache.read
		cache.read = func(int) (Facts, error) { return Facts{}, syscall.EMFILE }
		cache.Capture(incarnation(7, 1), "trainer")
		synctest.Wait()
		cache.read = gone
		time.Sleep(failureAge + time.Second)
		cache.Capture(incarnation(7, 1), "")
		synctest.Wait()
		facts, err := cache.Facts(incarnation(7, 1))
		require.ErrorIs(t, err, ErrIncomplete)
		assert.Equal(t, "trainer", facts.ServiceName)
	})
}
