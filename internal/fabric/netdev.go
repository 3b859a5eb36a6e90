package fabric

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// gidsAsked bounds how many entries of the GID table are asked for their
// network interface; the first ones are those of the port itself.
const gidsAsked = 8

// gidNetDev is the network interface of the port's first GID, "" when no GID
// has one.
func gidNetDev(port string) string {
	for index := range gidsAsked {
		name, err := attribute(port, "gid_attrs", "ndevs", strconv.Itoa(index))
		if err == nil && isName(name) {
			return name
		}
	}
	return ""
}

// sameHardware reports whether the interface of that name, as this network
// namespace knows it, is the one of the device. In a container without the
// host's network, "eth0" is another one.
func (r *Reader) sameHardware(device, physical, netdev string) bool {
	if netdev == "" {
		return false
	}
	if physical == "" {
		// Soft-RoCE has no hardware and names its interface.
		parent, err := attribute(device, "parent")
		return err == nil && parent == netdev
	}
	path := r.netPath(netdev)
	if physicalDevice(path) == physical {
		return true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		// A bond or VLAN links to the interfaces below it.
		return strings.HasPrefix(entry.Name(), "lower_") &&
			physicalDevice(filepath.Join(path, entry.Name())) == physical
	})
}

// maxNetSpeed is above every Ethernet, in Mb/s; more is a driver's way to say
// that it does not know.
const maxNetSpeed = 10_000_000

// netSpeed is the speed of an interface in bits per second, false when it is
// down or does not tell.
func (r *Reader) netSpeed(netdev string) (float64, bool) {
	text, err := attribute(r.netPath(netdev), "speed")
	if err != nil {
		return 0, false
	}
	megabits, err := strconv.ParseInt(text, 10, 64)
	if err != nil || megabits <= 0 || megabits > maxNetSpeed {
		return 0, false
	}
	return float64(megabits) * 1e6, true
}

// netMTU is the MTU of an interface in bytes, 0 when not known.
func (r *Reader) netMTU(netdev string) int {
	mtu, err := strconv.ParseUint(optional(r.netPath(netdev), "mtu"), 10, 31)
	if err != nil {
		return 0
	}
	return int(mtu)
}

func (r *Reader) netPath(netdev string) string {
	return filepath.Join(r.root, "class", "net", netdev)
}
