package fabric

import (
	"strconv"
	"strings"
)

// PCIeLink is the speed and the width of a link. The zero value is not known.
type PCIeLink struct {
	// GigatransfersPerSecond is the rate of a lane, such as 32 for PCIe 5.0.
	GigatransfersPerSecond float64
	// Lanes is the width.
	Lanes int
}

// BytesPerSecond is what the link carries in one direction after its line
// encoding, before the headers of packets; 0 when not known.
func (l PCIeLink) BytesPerSecond() float64 {
	return l.GigatransfersPerSecond * 1e9 * l.code() * float64(l.Lanes) / 8
}

// code is the part of a transfer that is payload: 8b/10b up to PCIe 2.0,
// 128b/130b up to 5.0, and from 6.0 on 236 of the 256 bytes of a flit (PCI
// Express Base Specification).
func (l PCIeLink) code() float64 {
	switch {
	case l.GigatransfersPerSecond <= 5:
		return 8.0 / 10
	case l.GigatransfersPerSecond <= 32:
		return 128.0 / 130
	default:
		return 236.0 / 256
	}
}

// BandwidthBytesPerSecond is what the narrowest link between the function and
// the CPU carries now in one direction, false when no link is known.
func (d PCIDevice) BandwidthBytesPerSecond() (float64, bool) {
	return d.narrowest(func(f PCIFunction) PCIeLink { return f.Link })
}

// LimitBytesPerSecond is what it could carry, were every link as fast and wide
// as both its ends allow. Less bandwidth than this is a link that came up
// degraded, or one that saves power.
func (d PCIDevice) LimitBytesPerSecond() (float64, bool) {
	return d.narrowest(func(f PCIFunction) PCIeLink { return f.MaxLink })
}

func (d PCIDevice) narrowest(of func(PCIFunction) PCIeLink) (float64, bool) {
	least := of(d.PCIFunction).BytesPerSecond()
	for _, bridge := range d.Bridges {
		if rate := of(bridge).BytesPerSecond(); rate > 0 && (least == 0 || rate < least) {
			least = rate
		}
	}
	return least, least > 0
}

// RefreshLinks returns the device with the links read again: unlike the rest
// they change while a machine runs.
func (r *Reader) RefreshLinks(d PCIDevice) PCIDevice {
	d.Link = r.currentLink(d.Address)
	bridges := make([]PCIFunction, len(d.Bridges))
	for i, bridge := range d.Bridges {
		bridge.Link = r.currentLink(bridge.Address)
		bridges[i] = bridge
	}
	d.Bridges = bridges
	return d
}

func (r *Reader) currentLink(address string) PCIeLink {
	return readLink(r.pciPath(address), "current_link_speed", "current_link_width")
}

func readLink(path, speed, width string) PCIeLink {
	return parseLink(optional(path, speed), optional(path, width))
}

// maxLanes is the width of the widest link that the specification knows.
const maxLanes = 32

// parseLink parses a speed such as "32.0 GT/s PCIe" and a width such as "16".
// The kernel shows "Unknown", and widths 0 and 255, where there is no link.
func parseLink(speed, width string) PCIeLink {
	number, _, ok := strings.Cut(speed, " GT/s")
	rate, errRate := strconv.ParseFloat(number, 64)
	lanes, errLanes := strconv.ParseUint(width, 10, 8)
	if !ok || errRate != nil || errLanes != nil || !(rate > 0 && rate <= 1024) || lanes == 0 || lanes > maxLanes {
		return PCIeLink{}
	}
	return PCIeLink{GigatransfersPerSecond: rate, Lanes: int(lanes)}
}
