package rdmareceiver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// listedMachine counts how often it is asked for its devices.
type listedMachine struct {
	devices []fabric.Device
	err     error
	asked   int
}

func (m *listedMachine) Devices() ([]fabric.Device, error) {
	m.asked++
	return m.devices, m.err
}

func (m *listedMachine) CPUNode(int) (int, bool) { return 0, false }

func TestDeviceNodes(t *testing.T) {
	now := time.Unix(1000, 0)
	m := &listedMachine{devices: []fabric.Device{
		{Name: "mlx5_0", NUMANode: pointer(1)}, {Name: "rxe0"},
	}, err: errors.New("a port could not be read")}
	topology := &sysfsTopology{machine: m, now: func() time.Time { return now }}
	for range 100 {
		node, ok := topology.DeviceNode("mlx5_0")
		assert.True(t, ok, "the devices count although a port could not be read")
		assert.Equal(t, 1, node)
	}
	_, ok := topology.DeviceNode("rxe0")
	assert.False(t, ok, "the firmware did not say")
	_, ok = topology.DeviceNode("mlx5_9")
	assert.False(t, ok)
	assert.Equal(t, 1, m.asked, "the list is kept for a while")

	m.devices = append(m.devices, fabric.Device{Name: "mlx5_9", NUMANode: pointer(0)})
	now = now.Add(deviceListAge + time.Second)
	node, ok := topology.DeviceNode("mlx5_9")
	assert.True(t, ok, "devices come and go")
	assert.Zero(t, node)
}

// What is near to what is known of two sockets, and not guessed of a machine that
// does not say.
func TestLocalityOfRecordedTrees(t *testing.T) {
	for _, test := range []struct {
		tree   string
		device string
		cpu    uint32
		want   map[string]any
	}{
		{fabrictest.TwoSockets, "mlx5_11", 60, map[string]any{attributeDeviceNode: int64(1), attributeCPUNode: int64(1), attributeLocality: "local"}},
		{fabrictest.TwoSockets, "mlx5_11", 3, map[string]any{attributeDeviceNode: int64(1), attributeCPUNode: int64(0), attributeLocality: "remote"}},
		{fabrictest.TwoSockets, "mlx5_0", 0, map[string]any{attributeDeviceNode: int64(0), attributeCPUNode: int64(0), attributeLocality: "local"}},
		{fabrictest.TwoSockets, "mlx5_0", 999, map[string]any{attributeDeviceNode: int64(0)}},
		{fabrictest.SingleRoCE, "mlx5_0", 3, map[string]any{attributeCPUNode: int64(0)}},
		{fabrictest.NoRDMA, "mlx5_0", 0, map[string]any{attributeCPUNode: int64(0)}},
	} {
		topology := &sysfsTopology{machine: fabric.NewReader(fabrictest.Tree(t, test.tree)), now: time.Now}
		attributes := pcommon.NewMap()
		putPoster(attributes, verbs.Thread{TID: 7, CPU: test.cpu}, test.device, machineTopology{numaNodes: topology})
		got := map[string]any{}
		for _, key := range []string{attributeDeviceNode, attributeCPUNode, attributeLocality} {
			if value, ok := attributes.Get(key); ok {
				got[key] = value.AsRaw()
			}
		}
		assert.Equal(t, test.want, got, "%s %s CPU %d", test.tree, test.device, test.cpu)
	}
}
