// Package fabric reads from sysfs what the machine has: RDMA devices, their
// ports and rates, and which NUMA node devices and CPUs belong to.
//
// It reads the few attributes it needs one by one. The counters next to them
// are left alone: on mlx5 each read of hw_counters is a command to the firmware.
package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Device is one RDMA device.
type Device struct {
	// Name is the kernel's name, such as "mlx5_0".
	Name string
	// PCIAddress is the function the device is on, such as "0000:18:00.0";
	// "" for a device without one, such as soft-RoCE.
	PCIAddress string
	// NUMANode is nil when the firmware did not say.
	NUMANode *int
	// Ports are in the order of their numbers.
	Ports []Port
}

// RateBytesPerSecond is the payload all active ports together carry in one
// direction, in bytes per second; false when no port is active, or when the
// rate of an active one is not known.
func (d Device) RateBytesPerSecond() (float64, bool) {
	var bits float64
	for _, port := range d.Ports {
		if !port.Active() {
			continue
		}
		if port.RateBitsPerSecond == 0 {
			return 0, false
		}
		bits += port.RateBitsPerSecond
	}
	return bits / 8, bits > 0
}

// Reader reads a sysfs. It is safe for concurrent use.
type Reader struct {
	root string
	numa numa
}

// NewReader returns a Reader of the sysfs at root, "" for /sys.
func NewReader(root string) *Reader {
	if root == "" {
		root = "/sys"
	}
	return &Reader{root: root}
}

// Devices returns the RDMA devices in the order of their names, none on a
// machine without RDMA. What could not be read of a device is told in the
// error, beside all the devices; one that was unplugged meanwhile is left out.
func (r *Reader) Devices() ([]Device, error) {
	entries, err := os.ReadDir(r.classPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list RDMA devices: %w", err)
	}
	var devices []Device
	var failed []error
	for _, entry := range entries {
		device, err := r.device(entry.Name())
		if unplugged(err) {
			continue
		}
		devices = append(devices, device)
		failed = append(failed, err)
	}
	return devices, errors.Join(failed...)
}

// RateBytesPerSecond is Device.RateBytesPerSecond of the device with that
// name, which need not be trusted; false also when there is no such device, or
// a port of it could not be read.
func (r *Reader) RateBytesPerSecond(name string) (float64, bool) {
	device, err := r.device(name)
	if err != nil {
		return 0, false
	}
	return device.RateBytesPerSecond()
}

func (r *Reader) classPath() string {
	return filepath.Join(r.root, "class", "infiniband")
}

func (r *Reader) device(name string) (Device, error) {
	if !isName(name) {
		return Device{}, fmt.Errorf("%q is not the name of an RDMA device", name)
	}
	path := filepath.Join(r.classPath(), name)
	physical := physicalDevice(path)
	ports, err := r.ports(path, physical)
	if err != nil {
		err = fmt.Errorf("read the ports of RDMA device %s: %w", name, err)
	}
	pci, address := pciFunction(physical)
	return Device{
		Name:       name,
		PCIAddress: address,
		NUMANode:   numaNode(pci),
		Ports:      ports,
	}, err
}

// unplugged reports whether a read failed because the device is no longer there.
func unplugged(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
