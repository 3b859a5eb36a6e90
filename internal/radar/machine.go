package radar

import (
	"fmt"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// Machine is what the node has, as far as RDMA goes.
type Machine struct {
	// Read says that it was read: without devices the node has none.
	Read    bool     `json:"read"`
	Devices []Device `json:"devices"`
	GPUs    []GPU    `json:"gpus"`
}

// Place is where a PCI function is. "" and nil are not known.
type Place struct {
	PCI  string `json:"pci,omitempty"`
	Node *int   `json:"node,omitempty"`
	// RootPort is the address of the port of the CPU that the function is below. What
	// shares one is in one slot, or behind the same PCIe switches.
	RootPort string `json:"root_port,omitempty"`
}

// Device is an RDMA device.
type Device struct {
	Name string `json:"name"`
	Place
	// Link is how fast its PCIe link runs, such as "32 GT/s x16". Degraded says that
	// the narrowest link on the way to the CPU runs slower than both its ends could.
	Link     string `json:"link,omitempty"`
	Degraded bool   `json:"degraded,omitempty"`
	Ports    []Port `json:"ports"`
}

// Port is a port of a device.
type Port struct {
	Number int `json:"number"`
	// State is in the kernel's words, such as "ACTIVE".
	State  string `json:"state"`
	Active bool   `json:"active"`
	Layer  string `json:"layer,omitempty"`
	NetDev string `json:"netdev,omitempty"`
	// Rate is in bits per second, 0 when it is not known.
	Rate float64 `json:"rate,omitempty"`
}

// GPU is a GPU.
type GPU struct{ Place }

// MachineOf tells of devices and GPUs.
func MachineOf(devices []fabric.DeviceState, gpus []fabric.PCIDevice) Machine {
	m := Machine{Read: true, Devices: make([]Device, 0, len(devices)), GPUs: make([]GPU, 0, len(gpus))}
	for i := range devices {
		m.Devices = append(m.Devices, deviceOf(&devices[i]))
	}
	for i := range gpus {
		m.GPUs = append(m.GPUs, GPU{placeOf(&gpus[i])})
	}
	return m
}

func deviceOf(state *fabric.DeviceState) Device {
	d := Device{Name: state.Name, Place: Place{PCI: state.PCIAddress, Node: state.NUMANode}, Ports: make([]Port, 0, len(state.Ports))}
	for _, p := range state.Ports {
		d.Ports = append(d.Ports, Port{
			Number: p.Number, State: p.State, Active: p.Active(), Layer: p.LinkLayer, NetDev: p.NetDev, Rate: p.RateBitsPerSecond,
		})
	}
	if state.PCI == nil {
		return d
	}
	d.RootPort = placeOf(state.PCI).RootPort
	if link := state.PCI.Link; link.Lanes > 0 {
		d.Link = fmt.Sprintf("%g GT/s x%d", link.GigatransfersPerSecond, link.Lanes)
	}
	now, known := state.PCI.BandwidthBytesPerSecond()
	limit, limitKnown := state.PCI.LimitBytesPerSecond()
	d.Degraded = known && limitKnown && now < limit
	return d
}

func placeOf(f *fabric.PCIDevice) Place {
	p := Place{PCI: f.Address, Node: f.NUMANode}
	if n := len(f.Bridges); n > 0 {
		p.RootPort = f.Bridges[n-1].Address
	}
	return p
}
