//go:build e2e

package tracer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/process"
)

// TestFactsOfTracedProcess: the incarnation that the kernel side tells is that of
// the process in /proc, as user space compares them.
func TestFactsOfTracedProcess(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	w := startWorkload(t, "perftest", "--seconds", "30")
	w.waitReady()
	w.release()
	cache := process.NewCache(process.NewReader(""), 16)
	pid := w.command.Process.Pid
	found := false
	for deadline := time.Now().Add(20 * time.Second); !found && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, queue := range snapshot(t, tr).Queues {
			if int(queue.ID.Process.TGID) != pid {
				continue
			}
			found = true
			facts, err := cache.Facts(queue.ID.Process)
			if err != nil && !errors.Is(err, process.ErrIncomplete) || facts.Executable != "verbsim" {
				t.Errorf("incarnation %d: %+v, %v", queue.ID.Process.Incarnation, facts, err)
			}
			later := queue.ID.Process
			later.Incarnation += uint64(time.Second)
			if _, err := cache.Facts(later); !errors.Is(err, process.ErrGone) {
				t.Errorf("a process that started a second later has the facts of this one: %v", err)
			}
			break
		}
	}
	if !found {
		t.Error("no queue of the process was seen")
	}
	w.stop()
	w.wait()
}
