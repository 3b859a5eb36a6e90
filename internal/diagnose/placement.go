package diagnose

import (
	"fmt"
	"strings"
)

// placementRemark says what to do about threads that were on another NUMA node than the
// NIC for all slow requests, whatever made these slow; "" where none was, or that is not
// known. What is always so is a part of what is normal: it is no cause by itself.
func (b *Burst) placementRemark() string {
	if b.Device == nil || b.Device.NUMANode == nil || b.Device.Nodes == nil {
		return ""
	}
	c := networkCase{Burst: b, waits: newWaits(b)}
	var far []string
	var on int
	for _, of := range threadsOfRequests() {
		if node, ok := c.farNode(of.thread); ok && (len(far) == 0 || node == on) {
			far, on = append(far, of.name), node
		}
	}
	if len(far) == 0 {
		return ""
	}
	nic := *b.Device.NUMANode
	return fmt.Sprintf("The %s ran on NUMA node %d and the NIC is on node %d: bind the process to that of the NIC.", strings.Join(far, " and the "), on, nic)
}
