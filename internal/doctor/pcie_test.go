package doctor

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

func TestPCIe(t *testing.T) {
	gen5, gen5half := fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: 16}, fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: 8}
	good := func() (fabric.DeviceDetail, *fabric.PCIDevice) {
		d := device("mlx5_0", port("ACTIVE", "LinkUp", 400))
		d.PCI = &fabric.PCIDevice{
			PCIFunction: fabric.PCIFunction{Address: "0000:18:00.0", Link: gen5, MaxLink: gen5, Control: &fabric.PCIeControl{RelaxedOrdering: true, MaxReadRequest: 4096}},
			Bridges:     []fabric.PCIFunction{{Address: "0000:17:00.0", Link: gen5, MaxLink: gen5, ACS: &fabric.ACS{Supported: true}}},
			IOMMU:       fabric.IOMMUPassthrough,
		}
		return d, d.PCI
	}
	for name, test := range map[string]struct {
		change func(*fabric.DeviceDetail, *fabric.PCIDevice)
		gpus   bool
		want   []expected
	}{
		"well": {func(*fabric.DeviceDetail, *fabric.PCIDevice) {}, true, []expected{{OK, "as fast as both ends"}}},
		"half width": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) { p.Link = gen5half }, true, []expected{
			{Warning, "mlx5_0: the PCIe link carries 31.5 GB/s instead of 63.0 GB/s: 0000:18:00.0 runs at 32 GT/s x8 and could at 32 GT/s x16"},
		}},
		"half width on a bridge": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) { p.Bridges[0].Link = gen5half }, true, []expected{{Warning, "0000:17:00.0 runs at"}}},
		"half width, slow port": {func(d *fabric.DeviceDetail, p *fabric.PCIDevice) {
			p.Link = gen5half
			d.Ports[0].RateBitsPerSecond = 100e9
		}, true, []expected{{OK, ""}, {Note, "which is more than the port"}}},
		"slow slot": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) {
			p.Bridges[0].Link, p.Bridges[0].MaxLink = gen5half, gen5half
			p.Link, p.MaxLink = gen5half, gen5half
		}, true, []expected{{OK, ""}, {Note, "the PCIe link carries 31.5 GB/s, the ports together 50.0 GB/s"}}},
		"ACS": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) {
			p.Bridges[0].ACS = &fabric.ACS{Supported: true, RequestRedirect: true}
		}, true, []expected{{Warning, "Turn ACS redirection off"}}},
		"ACS without a GPU": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) {
			p.Bridges[0].ACS = &fabric.ACS{Supported: true, RequestRedirect: true}
		}, false, []expected{{OK, ""}}},
		"IOMMU":        {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) { p.IOMMU = fabric.IOMMULazy }, true, []expected{{OK, ""}, {Note, "iommu=pt"}}},
		"ordering":     {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) { p.Control.RelaxedOrdering = false }, true, []expected{{OK, ""}, {Note, "relaxed ordering is off"}}},
		"read request": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) { p.Control.MaxReadRequest = 128 }, true, []expected{{OK, ""}, {Note, "128 bytes at a time"}}},
		"not root":     {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) { p.Control = nil }, true, []expected{{OK, ""}, {Unknown, "CAP_SYS_ADMIN"}}},
		"links not known": {func(_ *fabric.DeviceDetail, p *fabric.PCIDevice) {
			*p = fabric.PCIDevice{PCIFunction: fabric.PCIFunction{Control: p.Control}}
		}, true, []expected{{OK, ""}}},
		"no PCI, software": {func(d *fabric.DeviceDetail, _ *fabric.PCIDevice) { d.PCI = nil }, true, nil},
	} {
		d, p := good()
		test.change(&d, p)
		expect(t, name, judgePCIe([]fabric.DeviceDetail{d}, test.gpus), test.want...)
	}
}

// Eight NICs with one setting are one finding.
func TestAlikeDevicesAreOneFinding(t *testing.T) {
	var devices []fabric.DeviceDetail
	for _, name := range []string{"mlx5_1", "mlx5_0"} {
		d := device(name, port("ACTIVE", "LinkUp", 100))
		d.PCI = &fabric.PCIDevice{PCIFunction: fabric.PCIFunction{Control: &fabric.PCIeControl{MaxReadRequest: 4096}}}
		devices = append(devices, d)
	}
	expect(t, "alike", judgePCIe(devices, true), expected{OK, "2 devices"}, expected{Note, "mlx5_0, mlx5_1: relaxed ordering is off"})
}
