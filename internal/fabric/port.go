package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The link layers in the words of sysfs.
const (
	LinkLayerInfiniBand = "InfiniBand"
	LinkLayerEthernet   = "Ethernet"
)

// Port is one port of an RDMA device.
type Port struct {
	// Number counts from 1.
	Number int
	// State is the logical state in the kernel's words, such as "ACTIVE" or
	// "DOWN"; "" when it could not be read.
	State string
	// PhysicalState is that of the link, such as "LinkUp" or "Polling".
	PhysicalState string
	// LinkLayer is LinkLayerInfiniBand, LinkLayerEthernet or "Unspecified".
	LinkLayer string
	// RateBitsPerSecond is what the link carries in one direction, after its
	// line encoding; 0 when not known.
	RateBitsPerSecond float64
	// Signalling is the name of the rate of a lane, such as "NDR", and Lanes
	// their number, 0 when not known.
	Signalling string
	Lanes      int
	// LID is the local identifier of an InfiniBand port, 0 when it has none.
	LID uint16
	// NetDev is the network interface of an Ethernet port, "" when not known.
	NetDev string
	// NetDevMTU is the largest packet of that interface in bytes, 0 when not
	// known. The path MTU of RDMA is smaller and belongs to each queue pair:
	// sysfs has none of a port.
	NetDevMTU int
}

// Active reports whether the port carries traffic. ACTIVE_DEFER is an active
// InfiniBand port during a short interruption of its link.
func (p Port) Active() bool {
	return p.State == "ACTIVE" || p.State == "ACTIVE_DEFER"
}

func (r *Reader) ports(device, physical string) ([]Port, error) {
	entries, err := os.ReadDir(filepath.Join(device, "ports"))
	if err != nil {
		return nil, err
	}
	var ports []Port
	var failed []error
	for _, entry := range entries {
		number, err := strconv.ParseUint(entry.Name(), 10, 31)
		if err != nil {
			continue
		}
		port, err := r.port(device, physical, int(number))
		if err != nil {
			failed = append(failed, fmt.Errorf("port %d: %w", number, err))
		}
		ports = append(ports, port)
	}
	slices.SortFunc(ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	return ports, errors.Join(failed...)
}

// port returns what is known of a port also with an error.
func (r *Reader) port(device, physical string, number int) (Port, error) {
	path := filepath.Join(device, "ports", strconv.Itoa(number))
	port := Port{Number: number}
	state, err := attribute(path, "state")
	if err != nil {
		return port, err
	}
	port.State = parseState(state)
	port.LinkLayer, err = attribute(path, "link_layer")
	if err != nil {
		return port, err
	}
	port.PhysicalState = parseState(optional(path, "phys_state"))
	port.LID = parseLID(optional(path, "lid"))
	if port.LinkLayer == LinkLayerEthernet {
		port.NetDev = gidNetDev(path)
	}
	return port, r.readRate(device, physical, path, &port)
}

// readRate fills in how fast a port is. An Ethernet port's rate is asked of its
// network interface first: the InfiniBand attribute has a fixed set of values,
// in which older kernels show everything above 40 Gb/s as 100 Gb/s
// (ib_get_eth_speed), and it does not add up the members of a bond.
func (r *Reader) readRate(device, physical, path string, port *Port) error {
	text, err := attribute(path, "rate")
	if err != nil {
		return err
	}
	parsed, err := parseRate(text)
	if err == nil {
		port.RateBitsPerSecond = parsed.dataRate(port.LinkLayer)
	}
	if port.RateBitsPerSecond > 0 {
		port.Signalling, port.Lanes = parsed.generation, parsed.lanes
	}
	if !r.sameHardware(device, physical, port.NetDev) {
		return err
	}
	port.NetDevMTU = r.netMTU(port.NetDev)
	if speed, ok := r.netSpeed(port.NetDev); ok {
		port.RateBitsPerSecond = speed
		return nil
	}
	return err
}

// parseState returns the word of a state such as "4: ACTIVE".
func parseState(text string) string {
	number, word, ok := strings.Cut(text, ":")
	if _, err := strconv.ParseUint(number, 10, 8); !ok || err != nil {
		return ""
	}
	return strings.TrimSpace(word)
}

// parseLID parses a local identifier such as "0x1a"; 0 and 0xffff, the permissive
// one, are none.
func parseLID(text string) uint16 {
	digits, ok := strings.CutPrefix(text, "0x")
	lid, err := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil || lid == 0xffff {
		return 0
	}
	return uint16(lid)
}
