// Package fabric reads what the machine has: RDMA devices, their ports,
// addresses and counters, the PCIe topology above them, and which NUMA node
// devices and CPUs belong to. A value that is not known is absent: nil, "" or,
// where zero has no meaning of its own, 0.
//
// Devices are read attribute by attribute. Counters are left alone until they
// are asked for: on mlx5 each read of hw_counters is a command to the firmware.
package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Device is one RDMA device.
type Device struct {
	// Name is the kernel's name, such as "mlx5_0".
	Name string
	// NodeGUID is the GUID of the device, such as "a088:c203:00f1:3a2c".
	NodeGUID string
	// Firmware is the version of the firmware, Board the vendor's name of the
	// board.
	Firmware, Board string
	// PCIAddress is the function the device is on, such as "0000:18:00.0";
	// "" for a device without one, such as soft-RoCE.
	PCIAddress string
	// NUMANode is nil when the firmware did not say.
	NUMANode *int
	// Bond is the bond whose members are this device's ports (RoCE LAG), nil
	// when there is none.
	Bond *Bond
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
	if !isName(name) {
		return 0, false
	}
	path := r.devicePath(name)
	ports, err := r.ports(path, physicalDevice(path))
	if err != nil {
		return 0, false
	}
	return Device{Ports: ports}.RateBytesPerSecond()
}

// DeviceNode is the NUMA node of the device with that name, which need not be
// trusted; false when it is not known. Unlike Devices it asks no firmware.
func (r *Reader) DeviceNode(name string) (int, bool) {
	if !isName(name) {
		return 0, false
	}
	path := r.devicePath(name)
	node := r.nodeOf(path, physicalDevice(path))
	if node == nil {
		return 0, false
	}
	return *node, true
}

func (r *Reader) classPath() string {
	return filepath.Join(r.root, "class", "infiniband")
}

func (r *Reader) devicePath(name string) string {
	return filepath.Join(r.classPath(), name)
}

func (r *Reader) device(name string) (Device, error) {
	if !isName(name) {
		return Device{}, fmt.Errorf("%q is not the name of an RDMA device", name)
	}
	path := r.devicePath(name)
	physical := physicalDevice(path)
	ports, err := r.ports(path, physical)
	if err != nil {
		err = fmt.Errorf("read the ports of RDMA device %s: %w", name, err)
	}
	_, address := pciFunction(physical)
	return Device{
		Name:       name,
		NodeGUID:   knownGUID(optional(path, "node_guid")),
		Firmware:   optional(path, "fw_ver"),
		Board:      optional(path, "board_id"),
		PCIAddress: address,
		NUMANode:   r.nodeOf(path, physical),
		Bond:       r.bondOf(ports),
		Ports:      ports,
	}, err
}

// nodeOf is the NUMA node of the hardware of a device. Soft-RoCE has none of its own, and
// is where its network interface is.
func (r *Reader) nodeOf(path, physical string) *int {
	if parent := optional(path, "parent"); physical == "" && isName(parent) {
		physical = physicalDevice(r.netPath(parent))
	}
	pci, _ := pciFunction(physical)
	return numaNode(pci)
}

// knownGUID returns a GUID, "" for the one of zeros that stands for none.
func knownGUID(guid string) string {
	if strings.Trim(guid, "0:") == "" {
		return ""
	}
	return guid
}

// unplugged reports whether a read failed because the device is no longer there.
func unplugged(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
