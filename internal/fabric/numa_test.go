package fabric

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func TestCPUNode(t *testing.T) {
	reader := recorded(t, "two-sockets-eight-connectx7")
	for cpu, want := range map[int]int{0: 0, 55: 0, 56: 1, 111: 1, 112: 0, 167: 0, 168: 1, 223: 1} {
		got, known := reader.CPUNode(cpu)
		assert.True(t, known, cpu)
		assert.Equal(t, want, got, cpu)
	}
	for _, cpu := range []int{-1, 224, 1 << 40} {
		_, known := reader.CPUNode(cpu)
		assert.False(t, known, cpu)
	}
}

func TestCPUInSeveralNodesIsUnknown(t *testing.T) {
	_, known := recorded(t, "soft-roce").CPUNode(0)
	assert.False(t, known)
}

func TestNoNUMA(t *testing.T) {
	_, known := laidOut(t, "").CPUNode(0)
	assert.False(t, known)
}

func TestCPUOnlineLater(t *testing.T) {
	reader := laidOut(t, "devices/system/node/node0/cpulist = 0")
	_, known := reader.CPUNode(1)
	require.False(t, known)
	fabrictest.Add(t, reader.root, "devices/system/node/node0/cpulist = 0-1")
	node, known := reader.CPUNode(1)
	require.True(t, known)
	assert.Equal(t, 0, node)
}

func TestBrokenListsDoNotHideTheOthers(t *testing.T) {
	reader := laidOut(t, `
		devices/system/node/node0/cpulist = 0-99999999999999999999
		devices/system/node/node1/cpulist = 0-3
		devices/system/node/node2/cpulist =
		devices/system/node/node9999/cpulist = 0-3
		devices/system/node/nodes/cpulist = 0-3`)
	node, known := reader.CPUNode(2)
	require.True(t, known)
	assert.Equal(t, 1, node)
}

func TestCPUNodeOfThisMachine(t *testing.T) {
	node, known := NewReader("").CPUNode(0)
	if !known {
		t.Skip("the kernel of this machine names no NUMA node of CPU 0")
	}
	// The kernel says the same a second time, by a link beside the CPU.
	_, err := os.Stat("/sys/devices/system/cpu/cpu0/node" + strconv.Itoa(node))
	require.NoError(t, err)
	_, known = NewReader("").CPUNode(runtime.NumCPU() + 1<<20)
	assert.False(t, known)
}

func TestParseCPUList(t *testing.T) {
	for _, test := range []struct {
		text string
		want []CPURange
		ok   bool
	}{
		{"", nil, true},
		{"0", []CPURange{{0, 0}}, true},
		{"0-55,112-167", []CPURange{{0, 55}, {112, 167}}, true},
		{"0,2,4", []CPURange{{0, 0}, {2, 2}, {4, 4}}, true},
		{"3-1", nil, false},
		{"0-", nil, false},
		{"-1", nil, false},
		{"0,,1", nil, false},
		{"0-1-2", nil, false},
		{"0-3:1/2", nil, false},
	} {
		got, err := parseCPUList(test.text)
		assert.Equal(t, test.ok, err == nil, test.text)
		assert.Equal(t, test.want, got, test.text)
	}
}

func FuzzParseCPUList(f *testing.F) {
	for _, seed := range []string{"", "0", "0-55,112-167", "0-", ",", "2147483648", "0-3:1/2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ranges, err := parseCPUList(text)
		if err != nil {
			require.Nil(t, ranges)
			return
		}
		for _, r := range ranges {
			require.GreaterOrEqual(t, r.First, 0)
			require.GreaterOrEqual(t, r.Last, r.First)
			require.True(t, r.contains(r.First) && r.contains(r.Last))
		}
	})
}

func FuzzIsPCIAddress(f *testing.F) {
	for _, seed := range []string{"0000:18:00.0", "10000:e1:00.1", "pci0000:00", "mlx5_0", "0000:18:00.", ":::::::::.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isPCIAddress(text) {
			return
		}
		domain, err := strconv.ParseUint(text[:len(text)-len(":18:00.0")], 16, 32)
		require.NoError(t, err, "%q", text)
		require.LessOrEqual(t, domain, uint64(1)<<32)
	})
}
