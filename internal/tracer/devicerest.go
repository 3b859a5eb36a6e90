package tracer

import (
	"slices"
	"time"
)

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

// isDue says whether there is anything to give up or to let be used again. Where there
// is not, no device is idle: one that sysfs does not show later was not until then.
func (r *deviceRest) isDue(names []string, shown map[string]bool) bool {
	if len(r.retired) > 0 || slices.ContainsFunc(names, func(name string) bool { return name != "" && !shown[name] }) {
		return true
	}
	clear(r.idle)
	return false
}

// retire notes that a name does not lead to its indexes any more.
func (r *deviceRest) retire(now uint64, names []string, name string) {
	for i, n := range names {
		if n == name && !r.isRetired(uint32(i)) {
			r.retired[uint32(i)] = now
		}
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

// rested returns the indexes that have rested for long enough and have no queue.
func (r *deviceRest) rested(now uint64, used map[uint32]bool) []uint32 {
	var rested []uint32
	for i, since := range r.retired {
		if now-since >= r.retiredFor && !used[i] {
			rested = append(rested, i)
		}
	}
	slices.Sort(rested)
	return rested
}

// left returns the devices on which something is counted by an index that has rested.
// What is counted on all indexes of a device is told as one, and is dropped as one:
// where another one has a queue or is not retired, it stays until that is.
func (r *deviceRest) left(names []string, rested []uint32, used, counted map[uint32]bool) []string {
	var left []string
	for _, i := range rested {
		name := names[i]
		if !counted[i] || name == "" || slices.Contains(left, name) {
			continue
		}
		if !r.hasIndex(names, name) && !isUsedBy(names, name, used) {
			left = append(left, name)
		}
	}
	return left
}

// isUsedBy says whether a device has a queue by any of its indexes.
func isUsedBy(names []string, name string, used map[uint32]bool) bool {
	for i, n := range names {
		if n == name && used[uint32(i)] {
			return true
		}
	}
	return false
}

// indexesLike returns the names of the indexes among which a device has its own: those
// for sysfs, or the others.
func indexesLike(names []string, name string) []string {
	if slices.Contains(names[:sysfsDevices], name) {
		return names[:sysfsDevices]
	}
	return names[sysfsDevices:]
}

// isScarce says whether few of some indexes are free. Until then devices that are left
// out keep theirs: no queue tells whether they are used, and without an index the next
// queue is followed until it is known that it is on one of them.
func isScarce(names []string) bool {
	free := 0
	for _, name := range names {
		if name == "" {
			free++
		}
	}
	return free < len(names)/4
}
