package tracer

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// devices keeps what user space tells the kernel side about each device. The
// kernel side finds devices by the name in their ibv_context and numbers them.
type devices struct {
	side  *kernelSide
	takes func(name string) bool
	rate  func(device string) (float64, bool)
	names []string
	floor map[string]time.Duration
}

// refresh learns of new devices and updates the rates of all.
func (d *devices) refresh() error {
	var next uint32
	if err := d.side.nextDevice.Get(&next); err != nil {
		return fmt.Errorf("reading the number of devices: %w", err)
	}
	for i := uint32(len(d.names)); i < min(next, d.side.devices.length); i++ {
		device, err := d.side.devices.load(i)
		if err != nil {
			return err
		}
		d.names = append(d.names, commName(device.Name[:]))
	}
	for i, name := range d.names {
		if err := d.describe(uint32(i), name); err != nil {
			return err
		}
	}
	return nil
}

func (d *devices) describe(i uint32, name string) error {
	if name == "" {
		return nil
	}
	if !d.takes(name) {
		return d.side.devices.store32(i, unsafe.Offsetof(bpf.TrackerDevice{}.Ignored), 1)
	}
	var cost uint64
	if rate, ok := d.rate(name); ok {
		cost = nanosecondsPerGiB(rate)
	}
	if err := d.side.devices.store64(i, unsafe.Offsetof(bpf.TrackerDevice{}.NsPerGib), cost); err != nil {
		return err
	}
	floor := uint64(d.floor[name].Nanoseconds())
	return d.side.devices.store64(i, unsafe.Offsetof(bpf.TrackerDevice{}.FloorNs), floor)
}

// name returns the name of device i, "" when it is not known.
func (d *devices) name(i uint16) string {
	if int(i) >= len(d.names) {
		return ""
	}
	return d.names[i]
}

// nanosecondsPerGiB is how long a port of so many bytes per second needs for
// 2^30 bytes; 0 for a rate that makes no sense.
func nanosecondsPerGiB(bytesPerSecond float64) uint64 {
	if !(bytesPerSecond > 0) || math.IsInf(bytesPerSecond, 0) {
		return 0
	}
	cost := (1 << 30) / bytesPerSecond * 1e9
	// Slower than 2 Mb/s the arithmetic of the kernel side would overflow.
	if cost > 1<<42 {
		return 0
	}
	return max(uint64(math.Round(cost)), 1)
}
