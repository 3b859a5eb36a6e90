package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// The types of a GID in the words of sysfs.
const (
	// GIDTypeInfiniBand is that of InfiniBand and of RoCE version 1.
	GIDTypeInfiniBand = "IB/RoCE v1"
	// GIDTypeRoCEv2 is an IP address.
	GIDTypeRoCEv2 = "RoCE v2"
)

// maxGIDs bounds the table that is read; the devices known have up to 256.
const maxGIDs = 1024

// GID is one address of a port.
type GID struct {
	// Index is the position in the port's table, by which applications choose
	// it (NCCL_IB_GID_INDEX).
	Index int
	// GID is the identifier in the form of an IPv6 address.
	GID netip.Addr
	// Type is GIDTypeInfiniBand or GIDTypeRoCEv2, "" when not known.
	Type string
	// Address is the IP address that the GID of RoCE version 2 stands for,
	// IPv4 where it is mapped; the zero Addr otherwise.
	Address netip.Addr
	// NetDev is the network interface of the address, "" when not known.
	NetDev string
}

// GIDs returns the addresses of a port in the order of the table, without the
// entries that are empty. They are hundreds of attributes, so this is not done
// together with Devices. The names need not be trusted.
func (r *Reader) GIDs(device string, port int) ([]GID, error) {
	if !isName(device) {
		return nil, fmt.Errorf("%q is not the name of an RDMA device", device)
	}
	path := filepath.Join(r.devicePath(device), "ports", strconv.Itoa(port))
	indices, err := gidIndices(path)
	if err != nil {
		return nil, fmt.Errorf("list the GIDs of port %d of RDMA device %s: %w", port, device, err)
	}
	var gids []GID
	for _, index := range indices {
		if gid, ok := readGID(path, index); ok {
			gids = append(gids, gid)
		}
	}
	return gids, nil
}

func gidIndices(port string) ([]int, error) {
	directory, err := os.Open(filepath.Join(port, "gids"))
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	entries, err := directory.Readdirnames(maxGIDs)
	if err != nil && len(entries) == 0 {
		return nil, err
	}
	var indices []int
	for _, entry := range entries {
		if index, err := strconv.ParseUint(entry, 10, 16); err == nil {
			indices = append(indices, int(index))
		}
	}
	slices.Sort(indices)
	return indices, nil
}

// readGID is false for an entry that is empty: the kernel shows zeros for it.
func readGID(port string, index int) (GID, bool) {
	entry := strconv.Itoa(index)
	address, err := parseGID(optional(port, "gids", entry))
	if err != nil {
		return GID{}, false
	}
	gid := GID{Index: index, GID: address, Type: optional(port, "gid_attrs", "types", entry)}
	if gid.Type == GIDTypeRoCEv2 {
		gid.Address = address.Unmap()
	}
	if name := optional(port, "gid_attrs", "ndevs", entry); isName(name) {
		gid.NetDev = name
	}
	return gid, true
}

var errEmptyGID = errors.New("the GID is empty")

// parseGID parses eight groups of four hexadecimal digits, as the kernel's %pI6
// prints them. A GID with the prefix fe80::/64 and nothing after it is empty as
// well: the port has no GUID.
func parseGID(text string) (netip.Addr, error) {
	gid, err := netip.ParseAddr(text)
	if err != nil || !gid.Is6() || gid.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not a GID", shorten(text))
	}
	if gid.IsUnspecified() || gid == netip.MustParseAddr("fe80::") {
		return netip.Addr{}, errEmptyGID
	}
	return gid, nil
}
