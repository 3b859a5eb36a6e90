package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func device(name string, ports ...fabric.Port) fabric.DeviceDetail {
	return fabric.DeviceDetail{Device: fabric.Device{Name: name, Board: "MT_0838", Ports: ports}}
}

func port(state, physical string, gigabits float64) fabric.Port {
	return fabric.Port{Number: 1, State: state, PhysicalState: physical, LinkLayer: fabric.LinkLayerInfiniBand, RateBitsPerSecond: gigabits * 1e9}
}

func TestDevices(t *testing.T) {
	up, down := port("ACTIVE", "LinkUp", 400), port("DOWN", "Polling", 0)
	for name, test := range map[string]struct {
		devices     []fabric.DeviceDetail
		controllers []string
		want        []expected
	}{
		"none":          {nil, nil, []expected{{Note, "no RDMA device"}}},
		"all well":      {[]fabric.DeviceDetail{device("a", up), device("b", up)}, nil, []expected{{OK, "2 RDMA devices, 2 of 2 ports active: 2 InfiniBand at 400 Gb/s"}}},
		"spare port":    {[]fabric.DeviceDetail{device("a", up), device("b", down)}, nil, []expected{{OK, "1 of 2 ports"}, {Note, "b: port 1 is DOWN, its link Polling"}}},
		"nothing is up": {[]fabric.DeviceDetail{device("a", down), device("b", down)}, nil, []expected{{Warning, "a, b: port 1 is DOWN"}}},
		"no manager":    {[]fabric.DeviceDetail{device("a", up), device("b", port("INIT", "LinkUp", 400))}, nil, []expected{{OK, "1 of 2"}, {Warning, "subnet manager"}}},
		"slow cable":    {[]fabric.DeviceDetail{device("a", up), device("b", port("ACTIVE", "LinkUp", 200))}, nil, []expected{{OK, "1 InfiniBand at 200 Gb/s, 1 InfiniBand at 400 Gb/s"}, {Warning, "b: port 1 runs at 200 Gb/s, another of the same board (MT_0838) at 400 Gb/s"}}},
		"no driver":     {[]fabric.DeviceDetail{device("a", up)}, []string{"0000:18:00.0"}, []expected{{Warning, "without an RDMA device: 0000:18:00.0"}, {OK, "1 RDMA device"}}},
	} {
		expect(t, name, append(judgeDevices(test.devices, test.controllers), grouped(slower(test.devices))...), test.want...)
	}
}

// Every shape of machine is looked at, and nothing about those that are sound is odd.
func TestRecordedMachines(t *testing.T) {
	for tree, want := range map[string]map[string]Level{
		fabrictest.TwoSockets: {"devices": OK, "pcie": Warning},
		fabrictest.SoftRoCE:   {"devices": OK, "pcie": OK},
		fabrictest.NoRDMA:     {"devices": Note, "pcie": OK},
		fabrictest.SingleRoCE: {"devices": OK, "pcie": Unknown},
		fabrictest.Bond:       {"devices": OK, "pcie": Note},
		fabrictest.SRIOV:      {"devices": Note, "pcie": Unknown},
		fabrictest.EFA:        {"devices": OK, "pcie": Unknown},
	} {
		s := machine(t, tree, noCollector{})
		assert.Equal(t, want["devices"], worst(s.checkDevices(t.Context())), "%s: %v", tree, s.checkDevices(t.Context()))
		assert.Equal(t, want["pcie"], worst(s.checkPCIe(t.Context())), "%s: %v", tree, s.checkPCIe(t.Context()))
	}
}

// The composed machine has one link that came up at half its width.
func TestDegradedLinkIsNamed(t *testing.T) {
	s := machine(t, fabrictest.TwoSockets, noCollector{})
	findings := s.checkPCIe(t.Context())
	require.NotEmpty(t, findings)
	found := false
	for _, f := range findings {
		if f.Level == Warning && f.Do == cause("pcie_degraded").Remedy {
			found = true
			assert.Contains(t, f.What, "mlx5_11: the PCIe link carries 31.5 GB/s instead of 63.0 GB/s")
			assert.Contains(t, f.What, "GT/s x8 and could at 32 GT/s x16")
		}
	}
	assert.True(t, found, "%v", findings)
}

func TestDeviceThatCannotBeRead(t *testing.T) {
	s := machine(t, fabrictest.SingleRoCE, noCollector{})
	states, err := filepath.Glob(filepath.Join(s.root, "sys/class/infiniband/*/ports/1/state"))
	require.NoError(t, err)
	require.Len(t, states, 1)
	require.NoError(t, os.Remove(states[0]))
	require.NoError(t, os.Mkdir(states[0], 0o755))
	assert.Equal(t, Warning, worst(s.checkDevices(t.Context())))
}

func TestControllersWithoutDriver(t *testing.T) {
	s := machine(t, fabrictest.NoRDMA, noCollector{})
	s.write(t, "sys/bus/pci/devices/0000:18:00.0/class", "0x020700\n")
	assert.Equal(t, []string{"0000:18:00.0"}, s.controllers())
	assert.Equal(t, Warning, worst(s.checkDevices(t.Context())))
}

// What is for virtual machines has no RDMA device on the host.
func TestControllersOfVirtualMachines(t *testing.T) {
	s := machine(t, fabrictest.NoRDMA, noCollector{})
	for _, address := range []string{"0000:18:00.1", "0000:19:00.0"} {
		s.write(t, "sys/bus/pci/devices/"+address+"/class", "0x020700\n")
	}
	s.link(t, "sys/bus/pci/devices/0000:18:00.1/physfn", ".")
	s.link(t, "sys/bus/pci/devices/0000:19:00.0/driver", "../../../../bus/pci/drivers/vfio-pci")
	assert.Empty(t, s.controllers())
}
