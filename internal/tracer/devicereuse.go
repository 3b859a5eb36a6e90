package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// countedOn is how much was counted on each device: it changes whenever one is used.
func countedOn(snapshot *verbs.Snapshot) map[string]uint64 {
	counted := map[string]uint64{}
	for i := range snapshot.Series {
		counted[snapshot.Series[i].Key.Device] += snapshot.Series[i].Completions
	}
	for i := range snapshot.Rejected {
		counted[snapshot.Rejected[i].Device] += snapshot.Rejected[i].Count
	}
	return counted
}

// restDevices gives up devices that are gone, and lets their indexes be used again
// when nothing refers to them. It returns the names of those of which it dropped what
// was counted; all of that has been told. It is called with mu held.
func (t *Tracer) restDevices(now uint64, counted map[string]uint64) (gone []string, err error) {
	d := t.devices
	names := slices.Clone(*d.names.Load())
	if !d.rest.isDue(names, d.shown) {
		return nil, nil
	}
	used, err := t.devicesInUse()
	if err != nil {
		return nil, err
	}
	leaving, retireErr := t.retireDevices(now, names, d.rest.gone(now, names, d.keep(names, used), counted))
	left, free, walkErr := t.settleRested(now, names, used)
	gone, dropErr := t.dropDevices(names, slices.Concat(leaving, left))
	return gone, errors.Join(retireErr, walkErr, dropErr, t.releaseDevices(names, free))
}

// keep says which devices are not given up.
func (d *devices) keep(names []string, used map[uint32]bool) func(name string) bool {
	return func(name string) bool {
		return d.shown[name] || isUsedBy(names, name, used) || !d.takes(name) && !isScarce(indexesLike(names, name))
	}
}

// settleRested tells the indexes that have rested for long enough apart: those of some
// devices are counted on still, the others are free.
func (t *Tracer) settleRested(now uint64, names []string, used map[uint32]bool) (left []string, free []uint32, err error) {
	r := t.devices.rest
	rested := r.rested(now, used)
	if len(rested) == 0 {
		return nil, nil, nil
	}
	counted, err := t.countedIndexes()
	if err != nil {
		return nil, nil, err // What cannot be read may be counted.
	}
	free = slices.DeleteFunc(slices.Clone(rested), func(i uint32) bool { return counted[i] })
	return r.left(names, rested, used, counted), free, nil
}

// devicesInUse are the indexes of the devices that have a queue, those of queues that
// ended and whose slots rest included.
func (t *Tracer) devicesInUse() (map[uint32]bool, error) {
	used := map[uint32]bool{}
	err := t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		used[uint32(q.Device)] = true
		return nil
	})
	return used, err
}

// retireDevices lets no name lead to the indexes of some devices any more, and returns
// those of which none does.
func (t *Tracer) retireDevices(now uint64, names, of []string) (retired []string, err error) {
	d := t.devices
	var errs []error
	for _, name := range of {
		var label bpf.TrackerDevice
		for at := range min(len(name), len(label.Name)) {
			label.Name[at] = int8(name[at])
		}
		if err := d.side.maps.DeviceIndex.Delete(&label.Name); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("giving up the device %s: %w", name, err))
			continue
		}
		d.rest.retire(now, names, name)
		delete(d.floor, name)
		d.rates.forget(name)
		t.log.Debug("a device is gone", "device", name)
		retired = append(retired, name)
	}
	return retired, errors.Join(errs...)
}

// dropDevices drops what was counted on devices by all of their indexes, and returns
// those of which nothing is left. After an error that is none: what is left is dropped
// when it has rested.
func (t *Tracer) dropDevices(names, of []string) (dropped []string, err error) {
	if len(of) == 0 {
		return nil, nil
	}
	indexes := map[uint32]bool{}
	for i, name := range names {
		if slices.Contains(of, name) {
			indexes[uint32(i)] = true
		}
	}
	if err := t.dropCounted(indexes); err != nil {
		return nil, fmt.Errorf("dropping what was counted on %v: %w", of, err)
	}
	return of, t.baselines.forgetDevices(indexes)
}

// dropCounted drops what was counted on devices by their indexes: nothing of it, when
// not all can be found.
func (t *Tracer) dropCounted(indexes map[uint32]bool) error {
	var series []bpf.TrackerSeriesKey
	var posts []bpf.TrackerRejectedKey
	err := t.eachCounted(func(key *bpf.TrackerSeriesKey) {
		if indexes[uint32(key.Device)] {
			series = append(series, *key)
		}
	}, func(key *bpf.TrackerRejectedKey) {
		if indexes[key.Device] {
			posts = append(posts, *key)
		}
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(t.books.emptied, func(key emptiedKey, _ uint64) bool { return indexes[uint32(key.device)] })
	return errors.Join(deleteKeys(t.side.maps.Aggregates, series), deleteKeys(t.side.maps.Rejected, posts))
}

// countedIndexes are those of the devices that something is counted on, as a program
// does that found one just before it was retired.
func (t *Tracer) countedIndexes() (map[uint32]bool, error) {
	counted := map[uint32]bool{}
	for key := range t.books.emptied {
		counted[uint32(key.device)] = true
	}
	err := t.eachCounted(
		func(key *bpf.TrackerSeriesKey) { counted[uint32(key.Device)] = true },
		func(key *bpf.TrackerRejectedKey) { counted[key.Device] = true },
	)
	return counted, err
}

// eachCounted visits the keys of what the kernel side counts on devices.
func (t *Tracer) eachCounted(series func(*bpf.TrackerSeriesKey), posts func(*bpf.TrackerRejectedKey)) error {
	return errors.Join(
		eachKey[bpf.TrackerSeriesKey, bpf.TrackerSeries](t.side.maps.Aggregates, series),
		eachKey[bpf.TrackerRejectedKey, uint64](t.side.maps.Rejected, posts),
	)
}

func eachKey[K, V any](m *ebpf.Map, visit func(*K)) error {
	var key K
	var value V
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		visit(&key)
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", m.String(), err)
	}
	return nil
}

func deleteKeys[K any](m *ebpf.Map, keys []K) error {
	for i := range keys {
		if err := m.Delete(&keys[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("deleting from %s: %w", m.String(), err)
		}
	}
	return nil
}

// releaseDevices lets indexes be used again. Nothing leads to the names of those that
// are gone before the first is handed out.
func (t *Tracer) releaseDevices(names []string, free []uint32) error {
	if len(free) == 0 {
		return nil
	}
	d := t.devices
	indexes := map[uint32]bool{}
	for _, i := range free {
		if err := d.side.devices.store(i, &bpf.TrackerDevice{}); err != nil {
			return err
		}
		indexes[i] = true
	}
	if err := t.baselines.forgetDevices(indexes); err != nil {
		return err
	}
	return d.handOut(names, free, d.side.freeDevice)
}

// handOut takes the names of indexes away, and then hands those out that the kernel
// side numbers; the others the next devices of sysfs find. One that is not handed out
// is retired still, and is the next time.
func (d *devices) handOut(names []string, free []uint32, handOut func(uint32) error) error {
	for _, i := range free {
		names[i] = ""
	}
	d.names.Store(&names)
	for _, i := range free {
		if i >= sysfsDevices {
			if err := handOut(i); err != nil {
				return err
			}
		}
		delete(d.rest.retired, i)
	}
	return nil
}

// freeDevice hands out an index for a device that sysfs does not show.
func (k *kernelSide) freeDevice(i uint32) error {
	if err := k.maps.FreeDevices.Update(nil, i, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("handing out the index %d for devices: %w", i, err)
	}
	return nil
}
