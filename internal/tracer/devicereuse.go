package tracer

import (
	"errors"
	"fmt"
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
// when nothing refers to them. It returns the names of those that it gave up; what
// was counted on them has been told. It is called with mu held.
func (t *Tracer) restDevices(now uint64, counted map[string]uint64) (gone []string, err error) {
	d := t.devices
	names := slices.Clone(*d.names.Load())
	if !slices.ContainsFunc(names, func(name string) bool { return name != "" && !d.shown[name] }) {
		return nil, nil
	}
	used, err := t.devicesInUse()
	if err != nil {
		return nil, err
	}
	isUsed := func(name string) bool {
		return d.shown[name] || slices.ContainsFunc(used, func(i uint32) bool { return int(i) < len(names) && names[i] == name })
	}
	gone = d.rest.gone(now, names, isUsed, counted)
	errs := []error{}
	for _, name := range gone {
		errs = append(errs, t.retireDevice(now, names, name))
	}
	for _, i := range d.rest.free(now, func(i uint32) bool { return slices.Contains(used, i) || t.isCountedOn(i) }) {
		errs = append(errs, t.releaseDevice(names, i))
	}
	d.names.Store(&names)
	return gone, errors.Join(errs...)
}

// devicesInUse are the indexes of the devices that have a queue, those of queues that
// ended and whose slots rest included.
func (t *Tracer) devicesInUse() ([]uint32, error) {
	var used []uint32
	err := t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if i := uint32(q.Device); !slices.Contains(used, i) {
			used = append(used, i)
		}
		return nil
	})
	return used, err
}

// retireDevice lets no name lead to the indexes of a device any more, and drops what
// was counted on it.
func (t *Tracer) retireDevice(now uint64, names []string, name string) error {
	d := t.devices
	var label bpf.TrackerDevice
	for at := range min(len(name), len(label.Name)) {
		label.Name[at] = int8(name[at])
	}
	if err := d.side.maps.DeviceIndex.Delete(&label.Name); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("giving up the device %s: %w", name, err)
	}
	var errs []error
	for i := range names {
		if names[i] != name {
			continue
		}
		if !d.rest.isRetired(uint32(i)) {
			d.rest.retired[uint32(i)] = now
		}
		errs = append(errs, t.dropCounted(uint32(i)), t.baselines.forgetDevice(uint32(i)))
	}
	delete(d.floor, name)
	d.rates.forget(name)
	t.log.Debug("a device is gone", "device", name)
	return errors.Join(errs...)
}

// dropCounted drops what was counted on a device by its index.
func (t *Tracer) dropCounted(i uint32) error {
	var key bpf.TrackerSeriesKey
	var value bpf.TrackerSeries
	series := deleteMatching(t.side.maps.Aggregates, &key, &value, func() bool { return uint32(key.Device) == i })
	var rejectedKey bpf.TrackerRejectedKey
	var count uint64
	posts := deleteMatching(t.side.maps.Rejected, &rejectedKey, &count, func() bool { return rejectedKey.Device == i })
	for key := range t.books.emptied {
		if uint32(key.device) == i {
			delete(t.books.emptied, key)
		}
	}
	return errors.Join(series, posts)
}

// isCountedOn reports whether something is counted on a device by its index, as a
// program does that found it just before it was retired. What cannot be read may be.
func (t *Tracer) isCountedOn(i uint32) bool {
	found := false
	var key bpf.TrackerSeriesKey
	var value bpf.TrackerSeries
	entries := t.side.maps.Aggregates.Iterate()
	for entries.Next(&key, &value) {
		found = found || uint32(key.Device) == i
	}
	var rejectedKey bpf.TrackerRejectedKey
	var count uint64
	rejected := t.side.maps.Rejected.Iterate()
	for rejected.Next(&rejectedKey, &count) {
		found = found || rejectedKey.Device == i
	}
	for key := range t.books.emptied {
		found = found || uint32(key.device) == i
	}
	return found || entries.Err() != nil || rejected.Err() != nil
}

// releaseDevice lets an index be used again.
func (t *Tracer) releaseDevice(names []string, i uint32) error {
	d := t.devices
	if err := errors.Join(d.side.devices.store(i, &bpf.TrackerDevice{}), t.baselines.forgetDevice(i)); err != nil {
		return err
	}
	delete(d.rest.retired, i)
	names[i] = ""
	if i < sysfsDevices {
		return nil // The next device of sysfs finds it.
	}
	return d.side.freeDevice(i)
}

// freeDevice hands out an index for a device that sysfs does not show.
func (k *kernelSide) freeDevice(i uint32) error {
	if err := k.maps.FreeDevices.Update(nil, i, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("handing out the index %d for devices: %w", i, err)
	}
	return nil
}
