package radar

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

// machineOf is the machine of a recorded sysfs.
func machineOf(t *testing.T, tree string) Machine {
	t.Helper()
	reader := fabric.NewReader(fabrictest.Tree(t, tree))
	sampler := fabric.NewSampler(reader, fabric.NewCounterReader(reader, nil, nil, slog.New(slog.DiscardHandler), time.Now), nil, slog.New(slog.DiscardHandler))
	gpus, err := reader.GPUs()
	require.NoError(t, err)
	return MachineOf(sampler.Sample().Devices, gpus)
}

func TestMachineOfTwoSockets(t *testing.T) {
	m := machineOf(t, fabrictest.TwoSockets)
	require.Len(t, m.Devices, 8)
	require.Len(t, m.GPUs, 8)
	nodes, rootPorts := map[int]int{}, map[string]int{}
	for _, d := range m.Devices {
		require.NotNil(t, d.Node, d.Name)
		nodes[*d.Node]++
		assert.NotEmpty(t, d.Link, d.Name)
		assert.NotEmpty(t, d.Ports, d.Name)
		rootPorts[d.RootPort]++
	}
	assert.Equal(t, map[int]int{0: 4, 1: 4}, nodes)
	for _, g := range m.GPUs {
		assert.Equal(t, 1, rootPorts[g.RootPort], "each GPU is behind a switch with a NIC")
	}
}

// Where nothing is known of PCI there is nothing to tell, and no null.
func TestMachineWithoutPCI(t *testing.T) {
	for _, tree := range []string{fabrictest.SoftRoCE, fabrictest.NoRDMA} {
		text, err := json.Marshal(machineOf(t, tree))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "null", tree)
	}
	m := machineOf(t, fabrictest.SoftRoCE)
	require.NotEmpty(t, m.Devices)
	assert.Empty(t, m.Devices[0].PCI)
}
