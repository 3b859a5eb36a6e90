package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// smallReadRequest is below the default of PCIe.
const smallReadRequest = 512

func (s *System) checkPCIe(context.Context) []Finding {
	all, err := s.inventory()
	if err != nil && len(all.devices) == 0 {
		return []Finding{unreadable(err)}
	}
	return judgePCIe(all.devices, len(all.gpus) > 0)
}

// checkLanes is what checkPCIe says of links with fewer lanes than they could have. One
// that has them all and is slow may be saving power on an idle machine.
func (s *System) checkLanes(context.Context) []Finding {
	all, _ := s.inventory() // What it lacks the check of ports tells.
	return grouped(oddLinks(slices.DeleteFunc(slices.Clone(all.devices), hasAllLanes)))
}

func hasAllLanes(d fabric.DeviceDetail) bool {
	if d.PCI == nil {
		return true
	}
	slow := slowest(d.PCI)
	return slow.Link.Lanes >= slow.MaxLink.Lanes
}

// judgePCIe says what makes the way between NICs and memory slow. gpus says that the
// machine has some, whose traffic with the NICs access control services would redirect.
func judgePCIe(devices []fabric.DeviceDetail, gpus bool) []Finding {
	odd := oddLinks(devices)
	seen := 0
	for i := range devices {
		if devices[i].PCI == nil {
			continue
		}
		seen++
		for _, f := range judgeSettings(devices[i].PCI, gpus) {
			odd = append(odd, of{devices[i].Name, f})
		}
	}
	findings := grouped(odd)
	if seen > 0 && worst(findings) < Warning {
		findings = append([]Finding{{What: plural(seen, "device has", "devices have") + " PCIe links as fast as both ends allow, or faster than the port"}}, findings...)
	}
	return findings
}

// oddLinks are the links that are slower than they could be, or than the port.
func oddLinks(devices []fabric.DeviceDetail) []of {
	var odd []of
	for i := range devices {
		if devices[i].PCI == nil {
			continue
		}
		for _, f := range judgeLink(&devices[i]) {
			odd = append(odd, of{devices[i].Name, f})
		}
	}
	return odd
}

// cause has the words of a verdict, which are those of a report too.
func cause(name string) diagnose.Cause {
	for _, c := range diagnose.Causes() {
		if c.Name == name {
			return c
		}
	}
	return diagnose.Cause{}
}

// judgeLink looks at the narrowest link on the way to the CPU. One that is slower than it
// could be and faster than the port may be saving power.
func judgeLink(d *fabric.DeviceDetail) []Finding {
	now, known := d.PCI.BandwidthBytesPerSecond()
	limit, limited := d.PCI.LimitBytesPerSecond()
	if !known {
		return nil
	}
	rate, rated := d.RateBytesPerSecond()
	words := cause("pcie_degraded")
	switch {
	case limited && now < 0.9*limit && !(rated && now >= rate):
		return []Finding{{
			Level: Warning, What: fmt.Sprintf("the PCIe link carries %s instead of %s: %s", gigabytes(now), gigabytes(limit), narrowest(d.PCI)),
			Means: words.Happens + " One that saves power when idle looks the same.", Do: words.Remedy,
		}}
	case limited && now < 0.9*limit:
		return []Finding{{Level: Note, What: fmt.Sprintf("the PCIe link carries %s instead of %s, which is more than the port: %s", gigabytes(now), gigabytes(limit), narrowest(d.PCI))}}
	case rated && now < 0.98*rate:
		// Cards with two ports are made like that.
		return []Finding{{
			Level: Note, What: fmt.Sprintf("the PCIe link carries %s, the ports together %s", gigabytes(now), gigabytes(rate)),
			Means: "It runs as well as both its ends can.", Do: "Where that is too little: a slot with more lanes or a newer generation.",
		}}
	default:
		return nil
	}
}

// slowest is the function whose link carries the least.
func slowest(d *fabric.PCIDevice) fabric.PCIFunction {
	slow := d.PCIFunction
	for _, bridge := range d.Bridges {
		if rate := bridge.Link.BytesPerSecond(); rate > 0 && rate < slow.Link.BytesPerSecond() {
			slow = bridge
		}
	}
	return slow
}

// narrowest names the link that carries the least.
func narrowest(d *fabric.PCIDevice) string {
	slow := slowest(d)
	return fmt.Sprintf("%s runs at %g GT/s x%d and could at %g GT/s x%d", slow.Address,
		slow.Link.GigatransfersPerSecond, slow.Link.Lanes, slow.MaxLink.GigatransfersPerSecond, slow.MaxLink.Lanes)
}

func gigabytes(bytes float64) string { return fmt.Sprintf("%.1f GB/s", bytes/1e9) }

func judgeSettings(d *fabric.PCIDevice, gpus bool) []Finding {
	var findings []Finding
	if redirects, _ := d.ACSRedirects(); redirects && gpus {
		findings = append(findings, Finding{
			Level: Warning, What: "access control services (ACS) on a bridge above redirect traffic between neighbours",
			Means: "Traffic between GPU and NIC takes the way over the CPU, at half the bandwidth or less.",
			Do:    "Turn ACS redirection off on the bridges above NIC and GPU, as far as isolation permits it.",
		})
	}
	if d.IOMMU == fabric.IOMMUStrict || d.IOMMU == fabric.IOMMULazy {
		findings = append(findings, Finding{
			Level: Note, What: fmt.Sprintf("the IOMMU translates every access (%s)", d.IOMMU), Do: "Boot with iommu=pt, as far as isolation permits it.",
		})
	}
	if d.Control == nil {
		return append(findings, Finding{
			Level: Unknown, What: "relaxed ordering, the largest read request and ACS cannot be read",
			Means: "Configuration space beyond its first 64 bytes takes CAP_SYS_ADMIN.", Do: "Run this as root.",
		})
	}
	if !d.Control.RelaxedOrdering {
		findings = append(findings, Finding{
			Level: Note, What: "relaxed ordering is off", Means: "On some CPUs that halves what comes in.", Do: "Allow it in the firmware of machine and NIC, where data comes in slowly.",
		})
	}
	if size := d.Control.MaxReadRequest; size > 0 && size < smallReadRequest {
		findings = append(findings, Finding{
			Level: Note, What: fmt.Sprintf("the NIC reads %d bytes at a time (MaxReadReq)", size), Means: "What goes out may be slow.", Do: "Set it to 4096 (setpci), where data goes out slowly.",
		})
	}
	return findings
}
