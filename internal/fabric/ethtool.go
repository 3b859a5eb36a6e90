package fabric

import (
	"errors"
	"fmt"
)

// Ethtool asks the driver of a network interface.
type Ethtool interface {
	// BusInfo returns the address of the interface on its bus.
	BusInfo(netdev string) (string, error)
	// Stats returns what `ethtool -S` shows.
	Stats(netdev string) (map[string]uint64, error)
}

// interfaces returns those that carry the traffic of a port: the members of a
// bond, else the port's own.
func (d Device) interfaces(port Port) []string {
	if d.Bond != nil && d.Bond.NetDev == port.NetDev {
		return d.Bond.Members
	}
	if port.NetDev == "" {
		return nil
	}
	return []string{port.NetDev}
}

// statistics returns the counters of an interface of the device. An interface
// is asked by its name in this process's network namespace, where the name may
// be another's; only one in the device's own slot is believed.
func (c *CounterReader) statistics(device Device, netdev string) (map[string]uint64, bool, error) {
	bus, err := c.ethtool.BusInfo(netdev)
	if err != nil {
		return nil, false, fmt.Errorf("ask interface %s for its bus address: %w", netdev, err)
	}
	if !sameSlot(bus, device.PCIAddress) {
		return nil, false, errNotOurs
	}
	stats, err := c.ethtool.Stats(netdev)
	if err != nil {
		return nil, false, fmt.Errorf("ask interface %s for its statistics: %w", netdev, err)
	}
	return stats, bus == device.PCIAddress, nil
}

var errNotOurs = errors.New("an interface of that name is here, and not the device's")

// sameSlot reports whether two functions are on one device, as the ports of one
// NIC are.
func sameSlot(a, b string) bool {
	return isPCIAddress(a) && isPCIAddress(b) && a[:len(a)-1] == b[:len(b)-1]
}
