package rdmareceiver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
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
