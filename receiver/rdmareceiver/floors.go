package rdmareceiver

import (
	"sync"
	"time"
)

// floorSetter passes changes of the reporting floor to the engine. The engine
// may take its time, and the reading of completions, which asks for them, must
// not wait. It is safe for concurrent use.
type floorSetter struct {
	set    func(device string, excess time.Duration)
	wake   chan struct{}
	mu     sync.Mutex
	wanted map[string]time.Duration
}

func newFloorSetter(set func(string, time.Duration)) *floorSetter {
	return &floorSetter{set: set, wake: make(chan struct{}, 1), wanted: map[string]time.Duration{}}
}

// want asks for a floor. The last one asked for a device counts.
func (f *floorSetter) want(device string, excess time.Duration) {
	f.mu.Lock()
	f.wanted[device] = excess
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// close lets run end. There must be no want after it.
func (f *floorSetter) close() { close(f.wake) }

// run sets what is wanted until close.
func (f *floorSetter) run() {
	for range f.wake {
		for device, excess := range f.take() {
			f.set(device, excess)
		}
	}
}

func (f *floorSetter) take() map[string]time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.wanted
	f.wanted = map[string]time.Duration{}
	return taken
}
