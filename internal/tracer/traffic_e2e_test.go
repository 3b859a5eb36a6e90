//go:build e2e

package tracer_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// What the queues say that went over them is what their process says, while
// it holds still.
func TestTrafficOfQueues(t *testing.T) {
	cfg := everything
	cfg.Threshold = 100 * time.Microsecond
	tr := startTracer(t, cfg)
	collect(tr)
	for _, scenario := range []string{"nccl", "perftest", "two-devices"} {
		t.Run(scenario, func(t *testing.T) { checkTraffic(t, tr, scenario) })
	}
}

func checkTraffic(t *testing.T, tr *tracer.Tracer, scenario string) {
	w := startWorkload(t, scenario, "--seconds", "30")
	w.waitReady()
	w.release()
	time.Sleep(500 * time.Millisecond)
	pid := w.command.Process.Pid
	if err := w.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Its threads stop on their way out of the kernel, and so of the programs.
	time.Sleep(200 * time.Millisecond)
	s := snapshot(t, tr)
	_ = w.command.Process.Kill()
	_ = w.command.Wait()

	var ofProcess verbs.Series
	ofQueues, busy := trafficOfAll(s.Queues, pid)
	for i := range s.Series {
		series := &s.Series[i]
		if int(series.Key.Process.TGID) != pid || series.Key.Operation == verbs.OpRecv {
			continue
		}
		ofProcess.Bytes += series.Bytes
		ofProcess.Slow += series.Slow
		ofProcess.Timed += series.Timed
	}
	if ofQueues != ofProcess {
		t.Errorf("queues: %d bytes, %d timed, %d slow; process: %d, %d, %d",
			ofQueues.Bytes, ofQueues.Timed, ofQueues.Slow, ofProcess.Bytes, ofProcess.Timed, ofProcess.Slow)
	}
	if busy == 0 || ofQueues.Timed == 0 {
		t.Errorf("%d queues with traffic, %d completions timed", busy, ofQueues.Timed)
	}
	if ended := endedTraffic(t, tr, pid, busy); ended != ofQueues {
		t.Errorf("queues that ended: %d bytes, %d timed, %d slow, before their end %d, %d, %d",
			ended.Bytes, ended.Timed, ended.Slow, ofQueues.Bytes, ofQueues.Timed, ofQueues.Slow)
	}
	t.Logf("%d queues, %d bytes, %d timed, %d slow", busy, ofQueues.Bytes, ofQueues.Timed, ofQueues.Slow)
}

// trafficOfAll adds up the traffic of a process's queues, and counts those that
// have any.
func trafficOfAll(queues []verbs.QueueInfo, pid int) (sum verbs.Series, busy int) {
	for i := range queues {
		q := &queues[i]
		if int(q.ID.Process.TGID) != pid {
			continue
		}
		sum.Bytes += q.Traffic.Bytes
		sum.Slow += q.Traffic.Slow
		for _, n := range q.Traffic.Durations {
			sum.Timed += uint64(n)
		}
		if q.Traffic.Bytes != 0 {
			busy++
		}
	}
	return sum, busy
}

// endedTraffic adds up what snapshots tell of queues that ended, each once, until
// there are so many, and for longer than their slots rest.
func endedTraffic(t *testing.T, tr *tracer.Tracer, pid, want int) verbs.Series {
	var sum verbs.Series
	found := 0
	for begin := time.Now(); time.Since(begin) < 5*time.Second || found < want && time.Since(begin) < 20*time.Second; {
		s := snapshot(t, tr)
		some, busy := trafficOfAll(s.Ended, pid)
		found += busy
		sum.Bytes += some.Bytes
		sum.Slow += some.Slow
		sum.Timed += some.Timed
		time.Sleep(200 * time.Millisecond)
	}
	return sum
}
