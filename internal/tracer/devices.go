package tracer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// devices keeps what user space tells the kernel side about each device. The
// kernel side finds devices by the name in their ibv_context and numbers them.
// name may be called at any time, everything else by one goroutine.
type devices struct {
	side  *kernelSide
	takes func(name string) bool
	rates *rates
	names atomic.Pointer[[]string]
	floor map[string]time.Duration
}

func newDevices(side *kernelSide, takes func(name string) bool, rates *rates) *devices {
	d := &devices{side: side, takes: takes, rates: rates, floor: map[string]time.Duration{}}
	d.names.Store(new([]string))
	return d
}

// refresh learns of new devices and updates the rates of all.
func (d *devices) refresh() error {
	var next uint32
	if err := d.side.nextDevice.Get(&next); err != nil {
		return fmt.Errorf("reading the number of devices: %w", err)
	}
	names := slices.Clone(*d.names.Load())
	for i := uint32(len(names)); i < min(next, d.side.devices.length); i++ {
		device, err := d.side.devices.load(i)
		if err != nil {
			return err
		}
		if device.Ready == 0 {
			break // Its name is being written at this moment.
		}
		names = append(names, commName(device.Name[:]))
	}
	d.names.Store(&names)
	var errs []error
	for i, name := range names {
		errs = append(errs, d.describe(uint32(i), name))
	}
	return errors.Join(errs...)
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
