//go:build linux

package radar

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of this thread so far: what else the machine does is
// not in it.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var spent unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent))
	return time.Duration(spent.Nano())
}

// On a node with 4,096 queues a look, once a second, takes less than 0.01 cores, and
// with a view of it less than 0.05. The race detector is granted more: it takes twenty
// to sixty times as long.
func TestCostAt4096Queues(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const times = 20
	s := opened()
	looks := []int{100, 300, 500}
	snapshots := make([]func(), 0, len(looks))
	for _, count := range looks {
		snap := manyQueues(4096, uint32(count))
		snapshots = append(snapshots, func() { s.Look(at(count), snap, nil) })
	}
	begin := threadTime(t)
	for i := range times {
		snapshots[i%len(snapshots)]()
	}
	look := (threadTime(t) - begin) / times

	begin = threadTime(t)
	for range times {
		_, err := json.Marshal(s.View(at(600), at(590).UnixMilli()))
		require.NoError(t, err)
	}
	view := (threadTime(t) - begin) / times
	t.Logf("a look takes %v, a view %v", look, view)
	assert.Less(t, look, slower*10*time.Millisecond)
	assert.Less(t, look+view, slower*50*time.Millisecond)
}
