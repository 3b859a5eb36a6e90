//go:build e2e

package tracer_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of several threads that take the poller's CPU in turn the one that had it longest is
// told, and when that is the collector's own it is said.

const (
	turnEvery = 20 * time.Millisecond
	shortTurn = 300 * time.Microsecond
	longTurn  = 3 * time.Millisecond
	firstName = "first"
	longName  = "longest"
	ownName   = "ownthread"
)

func TestSchedulingBesideTurns(t *testing.T) {
	if os.Getenv("TURNS_CHILD") != "" {
		takeTurns(t)
	}
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	w := startWorkload(t, "slow-device", append([]string{"--seconds", "2"}, oneSpinner...)...)
	w.waitReady()
	pinTogether(t, w.command.Process.Pid)
	startTurns(t)
	r := &run{t: t, collected: collected, before: snapshot(t, tr), started: time.Now()}
	w.release()
	r.finish(tr, w)
	r.checkScheduling()
	told, collectors := r.whoTookLong()
	t.Logf("of %d completions, by who took the CPU for long: %v", len(r.seen), told)
	if told[longName] < 3 || told[firstName] > told[longName]/4 {
		t.Error("who came first is told, not who ran longest")
	}
	if collectors[longName] > 0 {
		t.Errorf("%d times a thread of another process is told to be the collector's", collectors[longName])
	}
}

func TestSchedulingBesideOwnThread(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	w := startWorkload(t, "slow-device", append([]string{"--seconds", "2"}, oneSpinner...)...)
	w.waitReady()
	pinTogether(t, w.command.Process.Pid)
	ended, ends := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		// The thread ends with the goroutine: it is of no use to others.
		takeFirstCPU(t, ownName)
		for {
			select {
			case <-ends:
				return
			case <-time.After(turnEvery):
				spin(longTurn)
			}
		}
	}()
	r := &run{t: t, collected: collected, before: snapshot(t, tr), started: time.Now()}
	w.release()
	r.finish(tr, w)
	close(ends)
	<-ended
	r.checkScheduling()
	told, collectors := r.whoTookLong()
	t.Logf("of %d completions, by who took the CPU for long: %v, of these the collector: %v", len(r.seen), told, collectors)
	if told[ownName] < 3 || collectors[ownName] < told[ownName] {
		t.Error("a thread of the collector is not told as such")
	}
}

// whoTookLong counts the completions whose poller had no CPU for most of a long turn,
// by the name of who had it, and those of them where that was the collector.
func (r *run) whoTookLong() (told, collectors map[string]int) {
	told, collectors = map[string]int{}, map[string]int{}
	for i := range r.seen {
		s := &r.seen[i].PollerScheduling
		if s.Runnable < longTurn*3/4 || s.Runnable <= s.Asleep+s.Stopped {
			continue
		}
		told[s.Instead.Name]++
		if s.ByCollector {
			collectors[s.Instead.Name]++
		}
	}
	return told, collectors
}

// startTurns starts a process of which a thread takes the first CPU for a short time
// and then lets another one have it for a long one.
func startTurns(t *testing.T) {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestSchedulingBesideTurns$")
	command.Env = append(os.Environ(), "TURNS_CHILD=1", "GOMAXPROCS=4")
	command.Stderr = os.Stderr
	tie(command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

func takeTurns(t *testing.T) {
	var wake [2]int
	if err := unix.Pipe(wake[:]); err != nil {
		t.Fatal(err)
	}
	go func() {
		takeFirstCPU(t, longName)
		for one := []byte{0}; ; spin(longTurn) {
			_, _ = unix.Read(wake[0], one)
		}
	}()
	takeFirstCPU(t, firstName)
	for one := []byte{0}; ; {
		rest := unix.NsecToTimespec(int64(turnEvery))
		_ = unix.Nanosleep(&rest, nil)
		spin(shortTurn)
		_, _ = unix.Write(wake[1], one)
	}
}

// takeFirstCPU gives the goroutine a thread with a name, that goes before others on the
// CPU of pinTogether.
func takeFirstCPU(t *testing.T, name string) {
	runtime.LockOSThread()
	terminated := append([]byte(name), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&terminated[0])), 0, 0, 0); err != nil {
		t.Error(err)
	}
	pinTogether(t, 0)
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, -20); err != nil {
		t.Error(err)
	}
}

func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}
