package rdmareceiver

import (
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// deviceListAge is how long a list of the devices is believed.
const deviceListAge = 10 * time.Second

// machine is the part of sysfs that the topology needs.
type machine interface {
	Devices() ([]fabric.Device, error)
	CPUNode(cpu int) (int, bool)
}

// sysfsTopology answers from sysfs and reads the devices again now and then,
// because they come and go. It is safe for concurrent use.
type sysfsTopology struct {
	machine
	now func() time.Time

	mu    sync.Mutex
	read  time.Time
	nodes map[string]int
}

var _ numaNodes = (*sysfsTopology)(nil)

// DeviceNode returns the NUMA node of a device.
func (t *sysfsTopology) DeviceNode(device string) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.nodes == nil || now.Sub(t.read) > deviceListAge {
		t.nodes, t.read = t.readNodes(), now
	}
	node, ok := t.nodes[device]
	return node, ok
}

// readNodes leaves out what cannot be read: its node is then not known.
func (t *sysfsTopology) readNodes() map[string]int {
	nodes := map[string]int{}
	devices, _ := t.Devices()
	for _, d := range devices {
		if d.NUMANode != nil {
			nodes[d.Name] = *d.NUMANode
		}
	}
	return nodes
}
