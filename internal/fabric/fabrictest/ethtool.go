package fabrictest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ethtool answers from the files ethtool/INTERFACE/bus_info and
// ethtool/INTERFACE/stats/NAME beside a tree.
type Ethtool struct {
	// Root is that of the tree.
	Root string
}

// BusInfo returns the PCI address of an interface.
func (e Ethtool) BusInfo(netdev string) (string, error) {
	text, err := os.ReadFile(filepath.Join(e.Root, "ethtool", netdev, "bus_info"))
	return strings.TrimSpace(string(text)), err
}

// Stats returns the statistics of an interface.
func (e Ethtool) Stats(netdev string) (map[string]uint64, error) {
	directory := filepath.Join(e.Root, "ethtool", netdev, "stats")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	stats := map[string]uint64{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
		stats[entry.Name()], err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return nil, err
		}
	}
	return stats, nil
}
