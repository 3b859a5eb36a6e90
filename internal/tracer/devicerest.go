package tracer

import "time"

const (
	// deviceUnused is how long a device that sysfs does not show has no queue, and
	// nothing is counted on it, before it is taken for gone: it may be one of another
	// network namespace that is not used at the moment, and what is usual on it is
	// forgotten then.
	deviceUnused = 5 * time.Minute
	// deviceRetired is how long the index of a device that is gone rests before it is
	// another one's. Programs that found it just before run for microseconds, and
	// records with it are read within a second.
	deviceRetired = time.Minute
)

// deviceRest knows which indexes of devices may be used again. A name may have more
// than one: they retire together.
type deviceRest struct {
	unusedFor, retiredFor uint64
	// idle are the devices without a queue that sysfs does not show, by name.
	idle map[string]idleDevice
	// retired are the indexes that no name leads to any more, and since when.
	retired map[uint32]uint64
}

// idleDevice is since when nothing happened on a device, and how much was counted on
// it until then.
type idleDevice struct{ since, counted uint64 }

func newDeviceRest(unused, retired time.Duration) *deviceRest {
	return &deviceRest{
		unusedFor: uint64(unused), retiredFor: uint64(retired),
		idle: map[string]idleDevice{}, retired: map[uint32]uint64{},
	}
}

func (r *deviceRest) isRetired(i uint32) bool {
	_, ok := r.retired[i]
	return ok
}

// hasIndex says whether a device has one that is not retired.
func (r *deviceRest) hasIndex(names []string, name string) bool {
	for i, n := range names {
		if n == name && !r.isRetired(uint32(i)) {
			return true
		}
	}
	return false
}

// gone returns the devices that may be given up now: each has an index, is not in use,
// and nothing was counted on it for long.
func (r *deviceRest) gone(now uint64, names []string, isUsed func(name string) bool, counted map[string]uint64) []string {
	idle := map[string]idleDevice{}
	var gone []string
	for i, name := range names {
		if name == "" || r.isRetired(uint32(i)) || isUsed(name) {
			continue
		}
		if _, seen := idle[name]; seen {
			continue
		}
		before, ok := r.idle[name]
		if !ok || before.counted != counted[name] {
			before = idleDevice{now, counted[name]}
		}
		idle[name] = before
		if now-before.since >= r.unusedFor {
			gone = append(gone, name)
		}
	}
	r.idle = idle
	return gone
}

// free returns the indexes that have rested for long enough and that nothing refers to.
func (r *deviceRest) free(now uint64, isUsed func(i uint32) bool) []uint32 {
	var free []uint32
	for i, since := range r.retired {
		if now-since >= r.retiredFor && !isUsed(i) {
			free = append(free, i)
		}
	}
	return free
}
