package fabric

import (
	"path/filepath"
	"strings"
)

// Bond is a bond of network interfaces that an RDMA device drives as one port
// (RoCE LAG).
type Bond struct {
	// NetDev is the interface of the bond itself, such as "bond0".
	NetDev string
	// Mode is the bonding mode in the kernel's words, such as "802.3ad".
	Mode string
	// Members are the interfaces in the bond.
	Members []string
}

// bondOf returns the bond that is the interface of a port.
func (r *Reader) bondOf(ports []Port) *Bond {
	for _, port := range ports {
		bonding := filepath.Join(r.netPath(port.NetDev), "bonding")
		members, err := attribute(bonding, "slaves")
		if port.NetDev == "" || err != nil {
			continue
		}
		// The attribute has the name and the number of the mode.
		mode, _, _ := strings.Cut(optional(bonding, "mode"), " ")
		return &Bond{NetDev: port.NetDev, Mode: mode, Members: names(members)}
	}
	return nil
}

// names returns those words that can be names of interfaces.
func names(text string) []string {
	var all []string
	for name := range strings.FieldsSeq(text) {
		if isName(name) {
			all = append(all, name)
		}
	}
	return all
}
