package fabric

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func TestRelationOf(t *testing.T) {
	// at is a function under bridges, from the function upwards.
	at := func(numa *int, host, address string, bridges ...string) PCIDevice {
		device := PCIDevice{PCIFunction: PCIFunction{Address: address, NUMANode: numa}, HostBridge: host}
		for _, bridge := range bridges {
			device.Bridges = append(device.Bridges, PCIFunction{Address: bridge})
		}
		return device
	}
	nic := at(node(0), "pci0000:15", "18:0", "down1", "up", "port")
	for _, test := range []struct {
		name  string
		other PCIDevice
		want  Relation
	}{
		{"itself", nic, RelationSelf},
		{"another function of the slot", at(node(0), "pci0000:15", "18:1", "down1", "up", "port"), RelationPIX},
		{"another port of the switch", at(node(0), "pci0000:15", "19:0", "down2", "up", "port"), RelationPIX},
		{"behind a second switch", at(node(0), "pci0000:15", "1b:0", "down4", "up2", "down2", "up", "port"), RelationPXB},
		{"another root port", at(node(0), "pci0000:15", "20:0", "port2"), RelationPHB},
		{"in the host bridge", at(node(0), "pci0000:15", "15:5"), RelationPHB},
		{"another host bridge", at(node(0), "pci0000:30", "31:0", "port3"), RelationNODE},
		{"another socket", at(node(1), "pci0000:97", "9a:0", "port4"), RelationSYS},
		{"node 0 may be missing", at(nil, "pci0000:97", "9a:0", "port4"), ""},
		{"host bridge not known", at(node(0), "", "9a:0", "port4"), ""},
		{"nothing", PCIDevice{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, RelationOf(nic, test.other))
			assert.Equal(t, test.want, RelationOf(test.other, nic), "the other way around")
		})
	}
}

// Each NIC of the composed DGX is near one GPU and far from the others.
func TestRelationsOfTwoSockets(t *testing.T) {
	all, err := recorded(t, fabrictest.TwoSockets).Inventory()
	require.NoError(t, err)
	require.Len(t, all.GPUs, 8)
	require.Len(t, all.Devices, 8)
	counts := map[Relation]int{}
	for _, device := range all.Devices {
		near := map[Relation]int{}
		for _, relation := range device.GPUs {
			near[relation]++
			counts[relation]++
		}
		assert.Equal(t, map[Relation]int{RelationPXB: 1, RelationNODE: 3, RelationSYS: 4}, near, device.Name)
	}
	assert.Equal(t, map[Relation]int{RelationPXB: 8, RelationNODE: 24, RelationSYS: 32}, counts)
}

func TestNoGPUIsNotInvented(t *testing.T) {
	gpus, err := recorded(t, fabrictest.SingleRoCE).GPUs()
	require.NoError(t, err)
	assert.Empty(t, gpus)
	gpus, err = laidOut(t, "").GPUs()
	require.NoError(t, err)
	assert.Empty(t, gpus)
	// An HDMI audio function of NVIDIA and a GPU of another vendor.
	gpus, err = laidOut(t, `
		devices/pci0000:00/0000:01:00.1/vendor = 0x10de
		devices/pci0000:00/0000:01:00.1/class = 0x040300
		bus/pci/devices/0000:01:00.1 -> ../../../devices/pci0000:00/0000:01:00.1
		devices/pci0000:00/0000:02:00.0/vendor = 0x1002
		devices/pci0000:00/0000:02:00.0/class = 0x030000
		bus/pci/devices/0000:02:00.0 -> ../../../devices/pci0000:00/0000:02:00.0`).GPUs()
	require.NoError(t, err)
	assert.Empty(t, gpus)
}
