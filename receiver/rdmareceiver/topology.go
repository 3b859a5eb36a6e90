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

	mu      sync.Mutex
	read    time.Time
	devices map[string]fabric.Device
	gpus    gpuTopology
}

var _ topology = (*sysfsTopology)(nil)

// newTopology answers from a machine with GPUs that NVIDIA's driver tells of below
// proc.
func newTopology(reader *fabric.Reader, proc string) *sysfsTopology {
	return &sysfsTopology{machine: reader, now: time.Now, gpus: gpuTopology{
		list: func() (map[string]string, error) { return fabric.GPUAddresses(proc) },
		pci:  reader.PCI,
	}}
}

// DeviceNode returns the NUMA node of a device.
func (t *sysfsTopology) DeviceNode(device string) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	node := t.device(device).NUMANode
	if node == nil {
		return 0, false
	}
	return *node, true
}

// GPU returns where a GPU is, and how far from a device.
func (t *sysfsTopology) GPU(uuid, device string) (string, fabric.Relation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	address := t.gpus.address(uuid, t.now())
	return address, t.gpus.relation(t.device(device).PCIAddress, address)
}

// device is the zero one when there is none with that name.
func (t *sysfsTopology) device(name string) fabric.Device {
	if now := t.now(); t.devices == nil || now.Sub(t.read) > deviceListAge {
		t.devices, t.read = t.readDevices(), now
	}
	return t.devices[name]
}

// readDevices leaves out what cannot be read: it is then not known.
func (t *sysfsTopology) readDevices() map[string]fabric.Device {
	found := map[string]fabric.Device{}
	devices, _ := t.Devices()
	for _, d := range devices {
		found[d.Name] = d
	}
	return found
}
