package rdmareceiver

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// gpuTopology knows where GPUs are. It is not safe for concurrent use.
type gpuTopology struct {
	// list returns the PCI addresses of GPUs by their UUIDs.
	list func() (map[string]string, error)
	pci  func(address string) (fabric.PCIDevice, error)

	read      time.Time
	addresses map[string]string
	relations map[[2]string]fabric.Relation
}

// address returns the PCI address of a GPU, "" when it is not known. The list is
// read again for a GPU that is not in it, which may be new.
func (g *gpuTopology) address(uuid string, now time.Time) string {
	if address, ok := g.addresses[uuid]; ok || now.Sub(g.read) < deviceListAge {
		return address
	}
	g.read = now
	if addresses, err := g.list(); err == nil {
		g.addresses = addresses
	}
	return g.addresses[uuid]
}

// relation returns how far two functions are from one another. Neither moves, so
// what was found is kept.
func (g *gpuTopology) relation(device, gpu string) fabric.Relation {
	key := [2]string{device, gpu}
	relation, ok := g.relations[key]
	if ok || device == "" || gpu == "" {
		return relation
	}
	a, errDevice := g.pci(device)
	b, errGPU := g.pci(gpu)
	if errDevice != nil || errGPU != nil {
		return ""
	}
	relation = fabric.RelationOf(a, b)
	if g.relations == nil {
		g.relations = map[[2]string]fabric.Relation{}
	}
	g.relations[key] = relation
	return relation
}
