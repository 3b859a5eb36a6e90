package tracer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// sysfsDevices is for how many devices of sysfs indexes are kept, SYSFS_DEVICES of
// bpf/types.h.
const sysfsDevices = 64

// devices keeps what user space tells the kernel side about each device. Those of
// sysfs have their indexes from here. Others the kernel side finds by the name in
// their ibv_context, which a process may make up, and numbers from sysfsDevices on.
// name may be called at any time, everything else by one goroutine.
type devices struct {
	side  *kernelSide
	sysfs string
	takes func(name string) bool
	rates *rates
	// names are by index, "" where there is none. Of one that is retired the name is
	// there until the index is free.
	names atomic.Pointer[[]string]
	floor map[string]time.Duration
	// shown are the names in sysfs.
	shown map[string]bool
	rest  *deviceRest
}

func newDevices(side *kernelSide, cfg Config, rates *rates) *devices {
	d := &devices{
		side:  side,
		sysfs: rooted(cfg.Root, "/sys/class/infiniband"),
		takes: cfg.TakesDevice,
		rates: rates,
		floor: map[string]time.Duration{},
		rest:  newDeviceRest(cfg.devicesUnused, cfg.devicesRetired),
	}
	names := make([]string, side.devices.length)
	d.names.Store(&names)
	return d
}

// refresh learns of new devices and updates the rates of all.
func (d *devices) refresh() error {
	names := slices.Clone(*d.names.Load())
	err := errors.Join(d.announce(names), d.follow(names))
	d.names.Store(&names)
	errs := []error{err}
	for i, name := range names {
		if name != "" && !d.rest.isRetired(uint32(i)) {
			errs = append(errs, d.describe(uint32(i), name))
		}
	}
	return errors.Join(errs...)
}

// announce tells the kernel side of the devices that sysfs has and it does not know.
func (d *devices) announce(names []string) error {
	entries, err := os.ReadDir(d.sysfs)
	if err != nil && !os.IsNotExist(err) {
		return nil //nolint:nilerr // There is no sight of it now: see SYSFS_DEVICES.
	}
	d.shown = map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		d.shown[name] = true
		free := slices.Index(names[:sysfsDevices], "")
		if free < 0 || len(name) >= len(bpf.TrackerDevice{}.Name) || d.rest.hasIndex(names, name) {
			continue // Without an index from here it gets one of the others.
		}
		known, err := d.add(uint32(free), name)
		if err != nil {
			return err
		}
		if !known {
			names[free] = name
		}
	}
	return nil
}

// add gives a device an index, and says whether the kernel side knew it before.
func (d *devices) add(i uint32, name string) (known bool, err error) {
	var device bpf.TrackerDevice
	for at := range len(name) {
		device.Name[at] = int8(name[at])
	}
	device.Ready = 1
	if err := d.side.devices.store(i, &device); err != nil {
		return false, err
	}
	err = d.side.maps.DeviceIndex.Update(&device.Name, i, ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("telling the kernel side of the device %s: %w", name, err)
	}
	return false, nil
}

// follow reads the names of the devices that the kernel side numbered.
func (d *devices) follow(names []string) error {
	for i := uint32(sysfsDevices); i < d.side.devices.length; i++ {
		if names[i] != "" {
			continue
		}
		device, err := d.side.devices.load(i)
		if err != nil {
			return err
		}
		if device.Ready != 0 { // Else it has none, or one that is being written.
			names[i] = commName(device.Name[:])
		}
	}
	return nil
}

func (d *devices) describe(i uint32, name string) error {
	if !d.takes(name) {
		return d.exclude(i)
	}
	var cost uint64
	if rate, ok := d.rates.of(name); ok {
		cost = nanosecondsPerGiB(rate)
	}
	if err := d.side.devices.store64(i, unsafe.Offsetof(bpf.TrackerDevice{}.NsPerGib), cost); err != nil {
		return err
	}
	floor := uint64(d.floor[name].Nanoseconds())
	return d.side.devices.store64(i, unsafe.Offsetof(bpf.TrackerDevice{}.FloorNs), floor)
}

// exclude lets the kernel side pass over a device, and ends the queues that it
// made before it knew.
func (d *devices) exclude(i uint32) error {
	device, err := d.side.devices.load(i)
	if err != nil || device.Ignored != 0 {
		return err
	}
	if err := d.side.devices.store32(i, unsafe.Offsetof(device.Ignored), 1); err != nil {
		return err
	}
	now, err := monotonic()
	if err != nil {
		return err
	}
	return d.side.endQueues(now, bpf.TrackerQueueEndEND_RESET, func(q *bpf.TrackerQueue) bool { return uint32(q.Device) == i })
}

// name returns the name of device i, "" when it is not known.
func (d *devices) name(i uint16) string {
	names := *d.names.Load()
	if int(i) >= len(names) {
		return ""
	}
	return names[i]
}

// nanosecondsPerGiB is how long a port of so many bytes per second needs for
// 2^30 bytes; 0 for a rate that makes no sense.
func nanosecondsPerGiB(bytesPerSecond float64) uint64 {
	if !(bytesPerSecond > 0) || math.IsInf(bytesPerSecond, 0) {
		return 0
	}
	cost := (1 << 30) / bytesPerSecond * 1e9
	// At 125 Mb/s and slower the arithmetic of the kernel side would overflow.
	if cost >= 1<<36 {
		return 0
	}
	return max(uint64(math.Round(cost)), 1)
}
