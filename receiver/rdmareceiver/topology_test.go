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
		topology := newTopology(fabric.NewReader(fabrictest.Tree(t, test.tree)), t.TempDir())
		attributes := pcommon.NewMap()
		putPoster(attributes, verbs.Thread{TID: 7, CPU: test.cpu}, test.device, topology)
		got := map[string]any{}
		for _, key := range []string{attributeDeviceNode, attributeCPUNode, attributeLocality} {
			if value, ok := attributes.Get(key); ok {
				got[key] = value.AsRaw()
			}
		}
		assert.Equal(t, test.want, got, "%s %s CPU %d", test.tree, test.device, test.cpu)
	}
}

// The memory of a GPU that is known has an address and a distance from each device;
// of any other only the UUID is known.
func TestGPUsOfTwoSockets(t *testing.T) {
	proc := fabrictest.LayOut(t, `
		driver/nvidia/gpus/0000:1b:00.0/information = GPU UUID: GPU-00000000-0000-0000-0000-000000000001
		driver/nvidia/gpus/0000:ff:00.0/information = GPU UUID: GPU-00000000-0000-0000-0000-00000000000f`)
	topology := newTopology(fabric.NewReader(fabrictest.Tree(t, fabrictest.TwoSockets)), proc)
	for _, test := range []struct {
		gpu, device string
		want        map[string]any
	}{
		{"1", "mlx5_0", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0", attributeGPURelation: "PXB"}},
		{"1", "mlx5_3", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0", attributeGPURelation: "NODE"}},
		{"1", "mlx5_6", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0", attributeGPURelation: "SYS"}},
		{"1", "rxe0", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0"}},
		{"f", "mlx5_0", map[string]any{attributeGPUPCIAddress: "0000:ff:00.0"}},
		{"2", "mlx5_0", map[string]any{}},
	} {
		uuid := "GPU-00000000-0000-0000-0000-00000000000" + test.gpu
		test.want[attributeGPUUUID], test.want[attributeMemoryKind] = uuid, "peer"
		for range 2 {
			attributes := pcommon.NewMap()
			putMemory(attributes, verbs.Memory{Kind: verbs.MemoryPeer, GPU: uuid}, test.device, topology)
			assert.Equal(t, test.want, attributes.AsRaw(), "%s and %s", test.gpu, test.device)
		}
	}
}

// The driver is asked for a GPU that it did not name, and not each time.
func TestGPUListAge(t *testing.T) {
	asked := 0
	g := gpuTopology{list: func() (map[string]string, error) {
		asked++
		if asked == 2 {
			return nil, errors.New("the driver is being unloaded")
		}
		return map[string]string{"GPU-1": "0000:1b:00.0"}, nil
	}}
	now := time.Unix(1000, 0)
	for range 100 {
		assert.Equal(t, "0000:1b:00.0", g.address("GPU-1", now))
		assert.Empty(t, g.address("GPU-2", now))
	}
	assert.Equal(t, 1, asked)
	now = now.Add(deviceListAge + time.Second)
	assert.Empty(t, g.address("GPU-2", now))
	assert.Equal(t, "0000:1b:00.0", g.address("GPU-1", now), "what was known is kept")
	assert.Equal(t, 2, asked)
}
