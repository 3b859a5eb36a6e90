package rdmareceiver

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// selectionWindow is how long slow completions are gathered before the slowest
// of them are exported. With the second that the reader's tick may add, a
// completion leaves within two seconds.
const selectionWindow = time.Second

// burstSeconds is how many seconds' worth of exports may be saved up.
const burstSeconds = 10

// floorRaiseFactor is how many bursts of completions the kernel must report in a
// window before its floor is raised. Below that, user space picks the slowest
// itself.
const floorRaiseFactor = 4

// floorLowerSeconds is how many seconds' worth of exports must stay unreported
// in a window before a raised floor is lowered. It is well under what a raised
// floor lets through, so that a steady load does not make the floor swing.
const floorLowerSeconds = 2

// maxSelectorDevices bounds the devices that are told apart. Their names come
// from the memory of the traced process.
const maxSelectorDevices = 256

// selector picks, once a window, the slow completions to export: the slowest of
// each device, as many as the budget of the host allows. It is not safe for
// concurrent use.
type selector struct {
	rate, burst int
	tokens      float64
	lastFlush   time.Time
	setFloor    func(device string, excess time.Duration)
	devices     map[string]*deviceWindow
}

// deviceWindow is what one device reported in the present window.
type deviceWindow struct {
	device string
	// kept holds the slowest, at most a burst of them, the least slow first.
	kept completionHeap
	// reported counts the slow completions that arrived, dropped the ones of
	// any kind that found no place.
	reported, dropped int
	floor             time.Duration
}

func newSelector(rate int, setFloor func(string, time.Duration), now time.Time) *selector {
	burst := rate * burstSeconds
	return &selector{
		rate: rate, burst: burst, tokens: float64(burst), lastFlush: now,
		setFloor: setFloor, devices: map[string]*deviceWindow{},
	}
}

// offer takes a completion into the present window.
func (s *selector) offer(c verbs.Completion) {
	w := s.window(c.Device)
	slow := c.Excess() > c.Threshold
	if slow {
		w.reported++
	}
	if len(w.kept) < s.burst {
		heap.Push(&w.kept, c)
		return
	}
	w.dropped++
	if moreUrgent(&c, &w.kept[0]) > 0 {
		w.kept[0] = c
		heap.Fix(&w.kept, 0)
	}
	if slow && w.reported%(floorRaiseFactor*s.burst) == 0 {
		s.raiseFloor(w)
	}
}

func (s *selector) window(device string) *deviceWindow {
	if w := s.devices[device]; w != nil {
		return w
	}
	if len(s.devices) >= maxSelectorDevices {
		device = ""
	}
	w := s.devices[device]
	if w == nil {
		w = &deviceWindow{device: device}
		s.devices[device] = w
	}
	return w
}

// raiseFloor spares the kernel the reports that could not be exported any more:
// those less slow than all that is kept.
func (s *selector) raiseFloor(w *deviceWindow) {
	if least := &w.kept[0]; least.Status == verbs.StatusSuccess && least.Excess() > w.floor {
		s.moveFloor(w, least.Excess())
	}
}

// flush ends the window: it returns the completions to export, the slowest of
// each device first, and how many were left out.
func (s *selector) flush(now time.Time) (export []verbs.Completion, left int) {
	s.refill(now)
	windows := s.sortedWindows()
	for round := 0; s.tokens >= 1; round++ {
		taken := false
		// One from each device in turn, so that a noisy device does not use up
		// what belongs to the others.
		for _, w := range windows {
			if round >= len(w.kept) || s.tokens < 1 {
				continue
			}
			export = append(export, w.kept[round])
			s.tokens--
			taken = true
		}
		if !taken {
			break
		}
	}
	for _, w := range windows {
		left += len(w.kept) + w.dropped
	}
	s.lowerFloors()
	s.reset()
	return export, left - len(export)
}

func (s *selector) refill(now time.Time) {
	if elapsed := now.Sub(s.lastFlush); elapsed > 0 {
		s.tokens = min(s.tokens+elapsed.Seconds()*float64(s.rate), float64(s.burst))
	}
	s.lastFlush = now
}

// sortedWindows sorts what every device kept, the slowest first, and the
// devices by their slowest.
func (s *selector) sortedWindows() []*deviceWindow {
	windows := make([]*deviceWindow, 0, len(s.devices))
	for _, w := range s.devices {
		if len(w.kept) == 0 {
			continue
		}
		slices.SortFunc(w.kept, func(a, b verbs.Completion) int { return moreUrgent(&b, &a) })
		windows = append(windows, w)
	}
	slices.SortFunc(windows, func(a, b *deviceWindow) int { return moreUrgent(&b.kept[0], &a.kept[0]) })
	return windows
}

// lowerFloors halves the floor of every device that reports less than could be
// exported.
func (s *selector) lowerFloors() {
	for _, w := range s.devices {
		if w.floor > 0 && w.reported < floorLowerSeconds*s.rate {
			s.moveFloor(w, lowered(w.floor))
		}
	}
}

// lowered halves a floor. Under the shortest threshold it means nothing.
func lowered(floor time.Duration) time.Duration {
	if floor /= 2; floor < minThreshold {
		return 0
	}
	return floor
}

func (s *selector) moveFloor(w *deviceWindow, floor time.Duration) {
	w.floor = floor
	s.setFloor(w.device, floor)
}

// reset empties the windows. Devices without a floor are forgotten.
func (s *selector) reset() {
	for device, w := range s.devices {
		if w.floor == 0 && w.reported == 0 {
			delete(s.devices, device)
			continue
		}
		clear(w.kept)
		w.kept, w.reported, w.dropped = w.kept[:0], 0, 0
	}
}

// floors returns the floors that are raised, by device.
func (s *selector) floors() map[string]time.Duration {
	raised := map[string]time.Duration{}
	for device, w := range s.devices {
		if w.floor > 0 {
			raised[device] = w.floor
		}
	}
	return raised
}

// moreUrgent compares two completions by what is worth exporting first:
// failures before slow ones, slower before less slow. Flushed requests come
// last, because they only follow from a failure before them and come by the
// hundred.
func moreUrgent(a, b *verbs.Completion) int {
	if c := cmp.Compare(urgency(a.Status), urgency(b.Status)); c != 0 {
		return c
	}
	return cmp.Compare(a.Excess(), b.Excess())
}

func urgency(s verbs.Status) int {
	switch s {
	case verbs.StatusSuccess:
		return 1
	case verbs.StatusWRFlushErr:
		return 0
	default:
		return 2
	}
}

// completionHeap is a heap with the least urgent completion on top.
type completionHeap []verbs.Completion

func (h completionHeap) Len() int           { return len(h) }
func (h completionHeap) Less(i, j int) bool { return moreUrgent(&h[i], &h[j]) < 0 }
func (h completionHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *completionHeap) Push(x any) { *h = append(*h, x.(verbs.Completion)) }

// Pop implements heap.Interface. The selector never pops, it replaces.
func (h *completionHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
