//go:build e2e

package tracer_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// traffic is what went over the queues of a process, of which so many were busy.
type traffic struct {
	bytes, timed, slow uint64
	queues             int
}

func (a *traffic) add(b traffic) {
	a.bytes += b.bytes
	a.timed += b.timed
	a.slow += b.slow
	a.queues += b.queues
}

// What the queues say that went over them is what their process says, while it
// holds still. Once it has ended each queue is told once more, with the same.
func TestTrafficOfQueues(t *testing.T) {
	beside(t)
	cfg := everything
	cfg.Threshold = 100 * time.Microsecond
	tr := startTracer(t, cfg)
	collect(tr)
	still, ended := map[int]traffic{}, map[int]traffic{}
	for _, scenario := range []string{"nccl", "perftest", "two-devices"} {
		pid, s := stopAndKill(t, tr, scenario)
		still[pid] = trafficOf(s.Queues, pid)
		t.Logf("%s: %+v", scenario, still[pid])
		if got, want := still[pid], trafficOfProcess(&s, pid); got.bytes != want.bytes || got.timed != want.timed || got.slow != want.slow {
			t.Errorf("%s: of the queues %+v, of the process %+v", scenario, got, want)
		}
		if still[pid].queues == 0 || still[pid].timed == 0 {
			t.Errorf("%s: %+v: this says nothing", scenario, still[pid])
		}
		addEnded(ended, &s, still)
	}
	// For longer than the slots of queues rest: none may be told twice.
	for begin := time.Now(); time.Since(begin) < 5*time.Second || anyLess(ended, still) && time.Since(begin) < 20*time.Second; {
		time.Sleep(200 * time.Millisecond)
		s := snapshot(t, tr)
		addEnded(ended, &s, still)
	}
	for pid, want := range still {
		if ended[pid] != want {
			t.Errorf("of queues that ended %+v, before their end %+v", ended[pid], want)
		}
	}
}

// stopAndKill runs a scenario, takes a snapshot while it holds still, and ends it.
func stopAndKill(t *testing.T, tr *tracer.Tracer, scenario string) (pid int, still verbs.Snapshot) {
	t.Helper()
	w := startWorkload(t, scenario, "--seconds", "30")
	w.waitReady()
	w.release()
	time.Sleep(500 * time.Millisecond)
	if err := w.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Its threads stop on their way out of the kernel, and so of the programs.
	time.Sleep(200 * time.Millisecond)
	still = snapshot(t, tr)
	w.kill()
	return w.command.Process.Pid, still
}

// trafficOf adds up the traffic of a process's queues, and counts those that have
// any.
func trafficOf(queues []verbs.QueueInfo, pid int) (sum traffic) {
	for i := range queues {
		q := &queues[i]
		if int(q.ID.Process.TGID) != pid {
			continue
		}
		sum.bytes += q.Traffic.Bytes
		sum.slow += q.Traffic.Slow
		for _, n := range q.Traffic.Durations {
			sum.timed += uint64(n)
		}
		if q.Traffic.Bytes != 0 {
			sum.queues++
		}
	}
	return sum
}

// trafficOfProcess is of the sends that the process's series tell of.
func trafficOfProcess(s *verbs.Snapshot, pid int) (sum traffic) {
	for i := range s.Series {
		series := &s.Series[i]
		if int(series.Key.Process.TGID) == pid && series.Key.Operation != verbs.OpRecv {
			sum.add(traffic{bytes: series.Bytes, timed: series.Timed, slow: series.Slow})
		}
	}
	return sum
}

// addEnded adds what a snapshot tells of queues that ended, of the given processes.
func addEnded(to map[int]traffic, s *verbs.Snapshot, of map[int]traffic) {
	for pid := range of {
		sum := to[pid]
		sum.add(trafficOf(s.Ended, pid))
		to[pid] = sum
	}
}

// anyLess reports whether queues are still to be told of.
func anyLess(told, want map[int]traffic) bool {
	for pid := range want {
		if told[pid].queues < want[pid].queues {
			return true
		}
	}
	return false
}
