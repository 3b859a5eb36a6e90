package tracer

import (
	"testing"
	"time"
)

// spin uses the processor for at least so long, by the thread's own clock.
func spin(m *cpuMeter, d time.Duration) {
	for end := m.total() + d; m.total() < end; {
		for range 1000 {
		}
	}
}

func TestMeterCountsWorkAndNotWaiting(t *testing.T) {
	var m cpuMeter
	m.run(func() { spin(&m, 20*time.Millisecond) })
	worked := m.total()
	if worked < 20*time.Millisecond {
		t.Errorf("%v for 20 ms of work", worked)
	}
	m.run(func() { time.Sleep(50 * time.Millisecond) })
	if waited := m.total() - worked; waited > 40*time.Millisecond {
		t.Errorf("%v for waiting", waited)
	}
}

// What goes on for long is counted before it ends.
func TestMeterCountsWhileWorkGoesOn(t *testing.T) {
	var m cpuMeter
	during := make(chan time.Duration)
	go m.run(func() {
		spin(&m, 20*time.Millisecond)
		during <- m.total()
	})
	if got := <-during; got < 20*time.Millisecond {
		t.Errorf("%v for 20 ms of work that goes on", got)
	}
}
