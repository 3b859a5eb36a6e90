package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

func (s *System) checkDevices(ctx context.Context) []Finding {
	all, _ := s.inventory() // What it lacks is told with the ports.
	return append(s.checkPorts(ctx), grouped(slower(all.devices))...)
}

// checkPorts is checkDevices without what compares ports: a machine may have one at
// another rate on purpose, such as for storage.
func (s *System) checkPorts(context.Context) []Finding {
	all, err := s.inventory()
	var findings []Finding
	if err != nil {
		// All of it is for everybody to read: it is the driver that fails.
		findings = append(findings, Finding{Level: Warning, What: err.Error(), Do: "Look into dmesg for what the driver says."})
	}
	return append(findings, judgeDevices(all.devices, s.controllers())...)
}

// tooFew tells of a machine that has fewer devices than it is said to have. No file tells
// how many it is to have: an Ethernet controller without an RDMA device may be meant so.
func (s *System) tooFew(least int) []Finding {
	all, _ := s.inventory() // What it lacks is told with the ports.
	if len(all.devices) >= least {
		return nil
	}
	return []Finding{{
		Level: Warning, What: fmt.Sprintf("the kernel lists %s of %d", plural(len(all.devices), "RDMA device", "RDMA devices"), least),
		Do: "Look into dmesg for the driver of those that are missing, and load it, such as mlx5_ib.",
	}}
}

// controllers are the addresses of the PCI functions that are InfiniBand controllers
// (class 0x0207 of PCI-SIG's list). Virtual functions, and what vfio-pci drives, are for
// virtual machines.
func (s *System) controllers() []string {
	directory := filepath.Join(s.root, "sys/bus/pci/devices")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil // A machine without PCI.
	}
	var addresses []string
	for _, entry := range entries {
		function := filepath.Join("sys/bus/pci/devices", entry.Name())
		driver, _ := os.Readlink(filepath.Join(s.root, function, "driver"))
		if strings.HasPrefix(s.line(filepath.Join(function, "class")), "0x0207") && !s.exists(filepath.Join(function, "physfn")) && filepath.Base(driver) != "vfio-pci" {
			addresses = append(addresses, entry.Name())
		}
	}
	return addresses
}

func judgeDevices(devices []fabric.DeviceDetail, controllers []string) []Finding {
	var findings []Finding
	if without := withoutDevice(devices, controllers); len(without) > 0 {
		findings = append(findings, Finding{
			Level: Warning, What: "InfiniBand controllers without an RDMA device: " + list(without),
			Means: "Programs cannot use them.", Do: "Look into dmesg for their driver, and load it, such as mlx5_ib.",
		})
	}
	if len(devices) == 0 {
		return append(findings, Finding{
			Level: Note, What: "the kernel lists no RDMA device in /sys/class/infiniband",
			Means: "The driver of a NIC makes them, such as mlx5_ib or irdma, and rdma_rxe one of software.",
		})
	}
	active, ports := 0, 0
	var odd []of
	for i := range devices {
		for _, port := range devices[i].Ports {
			ports++
			if port.Active() {
				active++
			}
		}
	}
	for i := range devices {
		for j := range devices[i].Ports {
			if f := judgePort(&devices[i].Ports[j], active == 0); f != nil {
				odd = append(odd, of{devices[i].Name, *f})
			}
		}
	}
	if active > 0 {
		findings = append(findings, Finding{What: fmt.Sprintf("%s, %d of %s active: %s",
			plural(len(devices), "RDMA device", "RDMA devices"), active, plural(ports, "port", "ports"), list(rates(devices)))})
	}
	return append(findings, grouped(odd)...)
}

// withoutDevice are the controllers that no device is on.
func withoutDevice(devices []fabric.DeviceDetail, controllers []string) []string {
	return slices.DeleteFunc(slices.Clone(controllers), func(address string) bool {
		return slices.ContainsFunc(devices, func(d fabric.DeviceDetail) bool { return d.PCIAddress == address })
	})
}

// judgePort is nil for a port that is as it should be. One without a cable is nothing odd
// on a machine with others.
func judgePort(p *fabric.Port, none bool) *Finding {
	if p.Active() {
		return nil
	}
	f := Finding{What: fmt.Sprintf("port %d is %s", p.Number, orUnknown(p.State)), Do: "Look at the cable, the interface (ip link) and the switch."}
	switch {
	case p.State == "INIT" || p.State == "ARMED":
		f.Level, f.Means = Warning, "The link is up, but nobody has made the port active."
		f.Do = "Look whether the fabric has a subnet manager, and whether it lets this port in."
	case none:
		f.Level = Warning
	default:
		f.Level = Note
		f.What += fmt.Sprintf(", its link %s", orUnknown(p.PhysicalState))
	}
	return &f
}

// slower are the devices with a port that is slower than those of others of their kind.
func slower(devices []fabric.DeviceDetail) []of {
	fastest := map[string]float64{}
	for i := range devices {
		for _, p := range devices[i].Ports {
			fastest[devices[i].Board] = max(fastest[devices[i].Board], p.RateBitsPerSecond)
		}
	}
	var odd []of
	for i := range devices {
		for _, p := range devices[i].Ports {
			most := fastest[devices[i].Board]
			if devices[i].Board != "" && p.Active() && p.RateBitsPerSecond > 0 && p.RateBitsPerSecond < 0.95*most {
				odd = append(odd, of{devices[i].Name, Finding{
					Level: Warning, What: fmt.Sprintf("port %d runs at %s, another of the same board (%s) at %s", p.Number, gigabits(p.RateBitsPerSecond), devices[i].Board, gigabits(most)),
					Means: "A ring of ranks runs at the rate of its slowest.", Do: "Look at the cable and at what the switch port is set to.",
				}})
			}
		}
	}
	return odd
}

// rates are how many ports run at which rate.
func rates(devices []fabric.DeviceDetail) []string {
	count := map[string]int{}
	for i := range devices {
		for _, p := range devices[i].Ports {
			if p.Active() {
				count[p.LinkLayer+" at "+gigabits(p.RateBitsPerSecond)]++
			}
		}
	}
	var all []string
	for kind, n := range count {
		all = append(all, fmt.Sprintf("%d %s", n, kind))
	}
	return all
}

func gigabits(bits float64) string {
	if bits == 0 {
		return "an unknown rate"
	}
	return fmt.Sprintf("%.4g Gb/s", bits/1e9)
}
