package rdmareceiver

import (
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// gpuListAge is how long a list of the GPUs is believed that lacks one.
const gpuListAge = 10 * time.Second

// machineTopology is a topology of parts.
type machineTopology struct {
	numaNodes
	*gpuTopology
}

var _ topology = machineTopology{}

// gpuTopology knows where GPUs are. It is safe for concurrent use.
type gpuTopology struct {
	// list returns the PCI addresses of GPUs by their UUIDs.
	list func() (map[string]string, error)
	// address returns the PCI address of a device, "" when it has none.
	address func(device string) string
	pci     func(address string) (fabric.PCIDevice, error)
	now     func() time.Time

	mu        sync.Mutex
	read      time.Time
	gpus      map[string]string
	relations map[[2]string]fabric.Relation
}

// newGPUs knows the GPUs that NVIDIA's driver tells of below proc.
func newGPUs(machine *fabric.Reader, proc string) *gpuTopology {
	return &gpuTopology{
		list:    func() (map[string]string, error) { return fabric.GPUAddresses(proc) },
		address: machine.DevicePCIAddress,
		pci:     machine.PCI,
		now:     time.Now,
	}
}

// GPU returns where a GPU is, and how far from a device.
func (g *gpuTopology) GPU(uuid, device string) (string, fabric.Relation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gpu := g.find(uuid)
	if gpu == "" {
		return "", ""
	}
	return gpu, g.relation(g.address(device), gpu)
}

// find returns the PCI address of a GPU. The list is read again for one that is
// not in it, which may be new.
func (g *gpuTopology) find(uuid string) string {
	now := g.now()
	if gpu, ok := g.gpus[uuid]; ok || now.Sub(g.read) < gpuListAge {
		return gpu
	}
	g.read = now
	if gpus, err := g.list(); err == nil {
		g.gpus = gpus
	}
	return g.gpus[uuid]
}

// relation returns how far two functions are from one another. Neither moves, so
// what was found is kept.
func (g *gpuTopology) relation(device, gpu string) fabric.Relation {
	key := [2]string{device, gpu}
	relation, ok := g.relations[key]
	if ok || device == "" {
		return relation
	}
	a, errDevice := g.pci(device)
	b, errGPU := g.pci(gpu)
	if errDevice != nil || errGPU != nil {
		return ""
	}
	if g.relations == nil {
		g.relations = map[[2]string]fabric.Relation{}
	}
	g.relations[key] = fabric.RelationOf(a, b)
	return g.relations[key]
}
