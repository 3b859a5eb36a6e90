package fabric

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func node(n int) *int { return &n }

// port is a device of one port with the given attributes.
func onePort(state, layer, rate string) string {
	return strings.NewReplacer("STATE", state, "LAYER", layer, "RATE", rate).Replace(`
		class/infiniband/dev0/ports/1/state = STATE
		class/infiniband/dev0/ports/1/link_layer = LAYER
		class/infiniband/dev0/ports/1/rate = RATE
`)
}

func TestRateBytesPerSecond(t *testing.T) {
	roce := func(more string) string {
		return onePort("4: ACTIVE", "Ethernet", "100 Gb/sec (4X EDR)") + more
	}
	for _, test := range []struct {
		name      string
		recording string
		gigabits  float64
	}{
		{"NDR", onePort("4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)"), 400},
		{"XDR", onePort("4: ACTIVE", "InfiniBand", "800 Gb/sec (4X XDR)"), 800},
		{"QDR, 8b/10b", onePort("4: ACTIVE", "InfiniBand", "40 Gb/sec (4X QDR)"), 32},
		{"SDR", onePort("4: ACTIVE", "InfiniBand", "2.5 Gb/sec (1X SDR)"), 2},
		{"SDR without its name", onePort("4: ACTIVE", "InfiniBand", "10 Gb/sec (4X)"), 8},
		{"FDR, 64b/66b", onePort("4: ACTIVE", "InfiniBand", "56 Gb/sec (4X FDR)"), 54.54545454545454},
		{"FDR10", onePort("4: ACTIVE", "InfiniBand", "40 Gb/sec (4X FDR10)"), 40},
		{"deferred", onePort("5: ACTIVE_DEFER", "InfiniBand", "200 Gb/sec (4X HDR)"), 200},
		{"Ethernet QDR", onePort("4: ACTIVE", "Ethernet", "40 Gb/sec (4X QDR)"), 40},
		{"Ethernet SDR is unknown", onePort("4: ACTIVE", "Ethernet", "2.5 Gb/sec (1X SDR)"), 0},
		{"down", onePort("1: DOWN", "InfiniBand", "2.5 Gb/sec (1X SDR)"), 0},
		{"unreadable rate", onePort("4: ACTIVE", "InfiniBand", "fast"), 0},
		{"no such device", "", 0},
		{"two ports, one down", onePort("4: ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)") + `
			class/infiniband/dev0/ports/2/state = 1: DOWN
			class/infiniband/dev0/ports/2/link_layer = InfiniBand
			class/infiniband/dev0/ports/2/rate = 10 Gb/sec (4X SDR)`, 100},
		{"two ports", onePort("4: ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)") + `
			class/infiniband/dev0/ports/2/state = 4: ACTIVE
			class/infiniband/dev0/ports/2/link_layer = InfiniBand
			class/infiniband/dev0/ports/2/rate = 100 Gb/sec (4X EDR)`, 200},
		{"one of two unknown", onePort("4: ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)") + `
			class/infiniband/dev0/ports/2/state = 4: ACTIVE
			class/infiniband/dev0/ports/2/link_layer = Ethernet
			class/infiniband/dev0/ports/2/rate = 2.5 Gb/sec (1X SDR)`, 0},
		{"the state of one of two unreadable", onePort("4: ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)") + `
			class/infiniband/dev0/ports/2/link_layer = InfiniBand`, 0},
		{"the interface knows better", roce(`
			class/infiniband/dev0/device -> ../../../devices/pci/0000:01:00.0
			devices/pci/0000:01:00.0/net/eth7/speed = 400000
			devices/pci/0000:01:00.0/net/eth7/device -> ../../../0000:01:00.0
			class/net/eth7 -> ../../devices/pci/0000:01:00.0/net/eth7
			class/infiniband/dev0/ports/1/gid_attrs/ndevs/0 = eth7`), 400},
		{"the interface is down", roce(`
			class/infiniband/dev0/device -> ../../../devices/pci/0000:01:00.0
			devices/pci/0000:01:00.0/net/eth7/speed = -1
			devices/pci/0000:01:00.0/net/eth7/device -> ../../../0000:01:00.0
			class/net/eth7 -> ../../devices/pci/0000:01:00.0/net/eth7
			class/infiniband/dev0/ports/1/gid_attrs/ndevs/0 = eth7`), 100},
		{"the interface of soft-RoCE knows better", roce(`
			class/infiniband/dev0/parent = eth7
			class/net/eth7/speed = 400000
			class/infiniband/dev0/ports/1/gid_attrs/ndevs/0 = eth7`), 400},
		{"not the parent of soft-RoCE", roce(`
			class/infiniband/dev0/parent = eth6
			class/net/eth7/speed = 400000
			class/infiniband/dev0/ports/1/gid_attrs/ndevs/0 = eth7`), 100},
		{"another interface of the same name", roce(`
			class/infiniband/dev0/device -> ../../../devices/pci/0000:01:00.0
			devices/pci/0000:01:00.0/numa_node = 0
			devices/virtual/net/eth0/speed = 10000
			class/net/eth0 -> ../../devices/virtual/net/eth0
			class/infiniband/dev0/ports/1/gid_attrs/ndevs/0 = eth0`), 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			rate, known := laidOut(t, test.recording).RateBytesPerSecond("dev0")
			assert.Equal(t, test.gigabits != 0, known)
			assert.InDelta(t, test.gigabits*1e9/8, rate, 1)
		})
	}
}

func TestNameOfDeviceIsNotTrusted(t *testing.T) {
	reader := laidOut(t, onePort("4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)"))
	_, known := reader.RateBytesPerSecond("dev0")
	require.True(t, known)
	for _, name := range []string{"", ".", "..", "../infiniband/dev0", "dev0/", "/dev0", "dev0\x00", strings.Repeat("d", 5000)} {
		_, known := reader.RateBytesPerSecond(name)
		assert.False(t, known, "%.20q", name)
	}
}

func TestUnreadableDeviceDoesNotHideTheOthers(t *testing.T) {
	reader := laidOut(t, onePort("4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)")+`
		class/infiniband/dev1/ports/1/state = 4: ACTIVE
		class/infiniband/dev1/ports/1/link_layer = InfiniBand
		class/infiniband/dev1/ports/1/rate = 4000000000 Gb/sec (4X NDR)
		class/infiniband/unplugged -> ../../devices/gone`)
	devices, err := reader.Devices()
	require.ErrorContains(t, err, "dev1")
	assert.ErrorContains(t, err, "4000000000")
	require.Len(t, devices, 2)
	_, known := devices[0].RateBytesPerSecond()
	assert.True(t, known)
	_, known = devices[1].RateBytesPerSecond()
	assert.False(t, known)
}

// A FIFO in the place of an attribute is not waited for.
func TestFIFOIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := attribute(path)
	require.ErrorContains(t, err, "not a regular file")
	_, err = attribute(filepath.Dir(path))
	require.ErrorContains(t, err, "not a regular file")
}

func TestPCIFunctionAboveDevice(t *testing.T) {
	reader := laidOut(t, onePort("4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)")+`
		class/infiniband/dev0/device -> ../../../devices/pci0000:00/10000:e1:00.1/mlx5_core.sf.4
		devices/pci0000:00/10000:e1:00.1/mlx5_core.sf.4/sfnum = 88
		devices/pci0000:00/10000:e1:00.1/numa_node = 3`)
	devices, err := reader.Devices()
	require.NoError(t, err)
	require.Len(t, devices, 1)
	assert.Equal(t, "10000:e1:00.1", devices[0].PCIAddress)
	assert.Equal(t, node(3), devices[0].NUMANode)
}

// The machine at hand must agree with what its kernel lists.
func TestThisMachine(t *testing.T) {
	devices, err := NewReader("").Devices()
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join("/sys", "class", "infiniband"))
	if os.IsNotExist(err) {
		require.Empty(t, devices)
		t.Skip("this machine has no RDMA device; recorded ones are read in the other tests")
	}
	require.NoError(t, err)
	assert.Len(t, devices, len(entries))
}

// A port whose firmware hangs, as a pipe that nobody writes to, does not keep the
// node of its device from being known.
func TestDeviceNodeAsksNoFirmware(t *testing.T) {
	reader := laidOut(t, `
		class/infiniband/dev0/device -> ../../../devices/pci/0000:01:00.0
		devices/pci/0000:01:00.0/numa_node = 1
		class/infiniband/dev0/ports/1/link_layer = InfiniBand
		class/infiniband/soft/ports/1/link_layer = Ethernet
		class/infiniband/soft/parent = veth0
		class/net/veth0/mtu = 1500
		class/infiniband/rxe0/parent = eth0
		class/net/eth0/device -> ../../../devices/pci/0000:40:01.0/virtio3
		devices/pci/0000:40:01.0/numa_node = 1
		devices/pci/0000:40:01.0/virtio3/status = 0x0f
		class/infiniband/astray/parent = ../eth0`)
	for _, attribute := range []string{"state", "phys_state", "lid", "rate"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(reader.devicePath("dev0"), "ports", "1", attribute), 0o600))
	}
	for _, test := range []struct {
		name string
		node int
		ok   bool
	}{
		{"dev0", 1, true},
		{"soft", 0, false},
		{"rxe0", 1, true},
		{"astray", 0, false},
		{"none", 0, false},
		{"../dev0", 0, false},
	} {
		node, ok := reader.DeviceNode(test.name)
		assert.Equal(t, test.ok, ok, test.name)
		assert.Equal(t, test.node, node, test.name)
	}
}
