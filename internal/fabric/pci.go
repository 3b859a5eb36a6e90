package fabric

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PCIFunction is one function on a PCI bus: a device's, or a bridge's.
type PCIFunction struct {
	// Address is domain:bus:device.function, such as "0000:18:00.0".
	Address string
	// Vendor, Device and Class are the identifiers of the configuration space,
	// such as 0x15b3, 0x1021 and 0x020700; 0 when not known.
	Vendor, Device, Class uint32
	// NUMANode is nil when the firmware did not say.
	NUMANode *int
	// LocalCPUs are the logical CPUs near the function, nil when not known.
	LocalCPUs []CPURange
	// Link is how fast the link towards the CPU runs now, MaxLink how fast this
	// function could; both are zero where there is no such link.
	Link, MaxLink PCIeLink
	// Control is nil unless the configuration space could be read, beyond whose
	// first 64 bytes only a process with CAP_SYS_ADMIN sees.
	Control *PCIeControl
	// ACS is nil unless the extended configuration space could be read.
	ACS *ACS
}

// PCIDevice is a function that does work, with what lies between it and the CPU.
type PCIDevice struct {
	PCIFunction
	// Bridges are the bridges from the function upwards; the last one is the
	// root port.
	Bridges []PCIFunction
	// HostBridge is the root of the tree, such as "pci0000:15"; "" when not
	// known.
	HostBridge string
	// IOMMU says what stands between the function and memory.
	IOMMU IOMMUMode
	// PhysicalFunction is the address of the function that this one is a
	// virtual one of (SR-IOV), "" when it is none.
	PhysicalFunction string
	// VirtualFunctions is how many it has itself, nil when it cannot have any.
	VirtualFunctions *int
}

// PCI reads the function at an address, which need not be trusted, and the
// bridges above it. Reading configuration space disturbs the bus a little and
// what is there seldom changes: do it when a device appears, not regularly.
func (r *Reader) PCI(address string) (PCIDevice, error) {
	if !isPCIAddress(address) {
		return PCIDevice{}, fmt.Errorf("%q is not the address of a PCI function", shorten(address))
	}
	path, err := filepath.EvalSymlinks(r.pciPath(address))
	if err != nil {
		return PCIDevice{}, fmt.Errorf("find PCI function %s: %w", address, err)
	}
	device := PCIDevice{
		PCIFunction:      readPCIFunction(path),
		IOMMU:            r.iommuMode(path),
		PhysicalFunction: physicalFunction(path),
		VirtualFunctions: virtualFunctions(path),
	}
	bridges, host := r.above(path)
	for _, bridge := range bridges {
		device.Bridges = append(device.Bridges, readPCIFunction(bridge))
	}
	device.HostBridge = host
	return device, nil
}

// above returns the paths of the bridges above a function from it upwards, and
// the name of the host bridge.
func (r *Reader) above(path string) (bridges []string, host string) {
	for path = filepath.Dir(path); ; path = filepath.Dir(path) {
		name := filepath.Base(path)
		switch {
		case isPCIAddress(name):
			bridges = append(bridges, path)
		case strings.HasPrefix(name, "pci") && strings.Contains(name, ":"):
			return bridges, name
		default:
			return bridges, ""
		}
	}
}

func readPCIFunction(path string) PCIFunction {
	function := PCIFunction{
		Address:  filepath.Base(path),
		Vendor:   hexadecimal(optional(path, "vendor")),
		Device:   hexadecimal(optional(path, "device")),
		Class:    hexadecimal(optional(path, "class")),
		NUMANode: numaNode(path),
		Link:     readLink(path, "current_link_speed", "current_link_width"),
		MaxLink:  readLink(path, "max_link_speed", "max_link_width"),
	}
	if text, err := readSome(filepath.Join(path, "local_cpulist"), cpuListLimit); err == nil {
		function.LocalCPUs, _ = parseCPUList(text)
	}
	if config, err := openRegular(filepath.Join(path, "config")); err == nil {
		defer config.Close()
		function.Control, function.ACS = parseConfig(config)
	}
	return function
}

// hexadecimal parses an identifier such as "0x15b3", 0 when it is none.
func hexadecimal(text string) uint32 {
	digits, ok := strings.CutPrefix(text, "0x")
	value, err := strconv.ParseUint(digits, 16, 32)
	if !ok || err != nil {
		return 0
	}
	return uint32(value)
}

func physicalFunction(path string) string {
	target, err := os.Readlink(filepath.Join(path, "physfn"))
	if address := filepath.Base(target); err == nil && isPCIAddress(address) {
		return address
	}
	return ""
}

// virtualFunctions is how many virtual functions there are, nil without SR-IOV.
func virtualFunctions(path string) *int {
	count, err := strconv.ParseUint(optional(path, "sriov_numvfs"), 10, 16)
	if err != nil {
		return nil
	}
	functions := int(count)
	return &functions
}
