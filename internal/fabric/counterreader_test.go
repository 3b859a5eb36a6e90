package fabric

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

// counted is a machine whose counters the test moves.
type counted struct {
	t      *testing.T
	root   string
	reader *CounterReader
	log    bytes.Buffer
	at     time.Time
}

func count(t *testing.T, root string, takes func(string) bool) *counted {
	t.Helper()
	c := &counted{t: t, root: root, at: time.Unix(1000, 0)}
	logger := slog.New(slog.NewTextHandler(&c.log, nil))
	c.reader = NewCounterReader(NewReader(root), fabrictest.Ethtool{Root: root}, takes, logger, func() time.Time { return c.at })
	return c
}

// read reads the counters ten seconds later.
func (c *counted) read() map[string]Reading {
	c.t.Helper()
	c.at = c.at.Add(10 * time.Second)
	return c.readNow()
}

func (c *counted) readNow() map[string]Reading {
	c.t.Helper()
	devices, err := c.reader.reader.Devices()
	require.NoError(c.t, err)
	readings, _ := c.reader.Read(devices)
	found := map[string]Reading{}
	for _, r := range readings {
		key := r.Device + " " + r.Name
		require.NotContains(c.t, found, key)
		found[key] = r
	}
	return found
}

func (c *counted) set(lines string) {
	c.t.Helper()
	fabrictest.Add(c.t, c.root, lines)
}

const singlePort = "class/infiniband/mlx5_0/ports/1/"

func TestCountersGrow(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	first := c.read()
	for name, r := range first {
		if !r.Counter.Momentary {
			assert.Zero(t, r.Count, "%s counts from the first reading", name)
		}
		assert.Equal(t, c.at, r.Since, name)
	}
	stalled := first["mlx5_0 outbound_pci_stalled_wr"]
	assert.InDelta(t, 0.42, stalled.Float(), 1e-9)
	assert.Zero(t, stalled.Port)
	since := c.at

	c.set(singlePort + "counters/port_xmit_data = 250000100\n" + singlePort + "hw_counters/packet_seq_err = 9\n" +
		"ethtool/enp1s0np0/stats/rx_prio3_pause = 121\nethtool/enp1s0np0/stats/rx_prio3_pause_duration = 5500\n" +
		`bus/pci/devices/0000:01:00.0/aer_dev_correctable = RxErr 2\nTOTAL_ERR_COR 4`)
	second := c.read()
	sent := second["mlx5_0 port_xmit_data"]
	assert.EqualValues(t, 400, sent.Int(), "words of four bytes")
	assert.Equal(t, DirectionTransmit, sent.Counter.Direction)
	assert.Equal(t, 1, sent.Port)
	assert.Equal(t, since, sent.Since)
	assert.EqualValues(t, 4, second["mlx5_0 packet_seq_err"].Int())
	assert.EqualValues(t, 1, second["mlx5_0 aer_dev_correctable"].Int())
	pause := second["mlx5_0 rx_prio3_pause"]
	assert.EqualValues(t, 1, pause.Int())
	assert.Equal(t, node(3), pause.Priority)
	assert.InDelta(t, 0.001, second["mlx5_0 rx_prio3_pause_duration"].Float(), 1e-9)
	assert.NotContains(t, second, "mlx5_0 rx_prio0_pause", "a priority without pauses has no series")
	assert.NotContains(t, second, "mlx5_0 lifespan")
	assert.NotContains(t, second, "mlx5_0 ch0_poll", "unknown counters are left alone")
	assert.Empty(t, c.log.String())
}

func TestCountersWrapAndRestart(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	c.set(singlePort + "hw_counters/out_of_sequence = 4294967290\n" + singlePort + "counters/symbol_error = 65535")
	c.read()
	c.set(singlePort + "hw_counters/out_of_sequence = 4\n" + singlePort + "counters/symbol_error = 3")
	got := c.read()
	assert.EqualValues(t, 10, got["mlx5_0 out_of_sequence"].Count, "32 bits wrap")
	assert.EqualValues(t, 3, got["mlx5_0 symbol_error"].Count, "16 bits stay at the top until somebody clears them")

	// The driver is loaded again: another device of the same name.
	old, err := filepath.EvalSymlinks(filepath.Join(c.root, "class/infiniband/mlx5_0"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(old, old+".old"))
	require.NoError(t, os.CopyFS(old, os.DirFS(old+".old")))
	c.set(singlePort + "hw_counters/out_of_sequence = 4000000000")
	got = c.read()
	assert.Zero(t, got["mlx5_0 out_of_sequence"].Count)
	assert.Equal(t, c.at, got["mlx5_0 out_of_sequence"].Since, "a new device counts anew")
}

func TestCountersAreReadOnceASecond(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	c.read()
	c.set(singlePort + "hw_counters/out_of_sequence = 5")
	c.at = c.at.Add(500 * time.Millisecond)
	assert.Zero(t, c.readNow()["mlx5_0 out_of_sequence"].Count)
	c.at = c.at.Add(500 * time.Millisecond)
	assert.EqualValues(t, 2, c.readNow()["mlx5_0 out_of_sequence"].Count)
	for i, late := range []time.Duration{1030, 970, 1000, 940} {
		c.set(fmt.Sprintf("%shw_counters/out_of_sequence = %d", singlePort, 6+i))
		c.at = c.at.Add(late * time.Millisecond)
		assert.EqualValues(t, 3+i, c.readNow()["mlx5_0 out_of_sequence"].Count, "a reader that comes every second is not always on time")
	}
}

func TestUnreadableCountersAreSaidOnce(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	c.set(singlePort + "counters/symbol_error = not a number\n" + singlePort + "counters/link_downed =\n" +
		"bus/pci/devices/0000:01:00.0/aer_dev_fatal = none")
	for range 3 {
		got := c.read()
		assert.NotContains(t, got, "mlx5_0 symbol_error")
		assert.Contains(t, got, "mlx5_0 port_rcv_errors", "the others are read")
	}
	said := c.log.String()
	assert.Equal(t, 1, bytes.Count([]byte(said), []byte("\n")), said)
	for _, name := range []string{"symbol_error", "link_downed", "aer_dev_fatal"} {
		assert.Contains(t, said, name)
	}
	c.set(singlePort + "counters/symbol_error = 7")
	assert.NotContains(t, c.read(), "mlx5_0 symbol_error", "left alone for a while")
	c.at = c.at.Add(refusedFor)
	assert.Contains(t, c.read(), "mlx5_0 symbol_error", "and tried again")
	c.set(singlePort + "counters/symbol_error = once more")
	c.read()
	c.read()
	assert.Equal(t, 2, strings.Count(c.log.String(), "symbol_error"), "what begins anew is said anew")
}

// A read that fails once, or for a while, takes nothing from what was counted.
func TestCounterGoesOnAfterAFailure(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	c.set(singlePort + "counters/symbol_error = 1")
	c.read()
	since := c.at
	c.set(singlePort + "counters/symbol_error = 3")
	assert.EqualValues(t, 2, c.read()["mlx5_0 symbol_error"].Count)

	c.set(singlePort + "counters/symbol_error = busy")
	assert.NotContains(t, c.read(), "mlx5_0 symbol_error")
	assert.Empty(t, c.log.String(), "once is nothing")
	c.set(singlePort + "counters/symbol_error = 4")
	assert.EqualValues(t, 3, c.read()["mlx5_0 symbol_error"].Count, "it is read at the next reading")

	c.set(singlePort + "counters/symbol_error = busy")
	c.read()
	c.read()
	c.set(singlePort + "counters/symbol_error = 9")
	c.at = c.at.Add(refusedFor)
	got := c.read()["mlx5_0 symbol_error"]
	assert.EqualValues(t, 8, got.Count)
	assert.Equal(t, since, got.Since)
}

// The same of the counters of an interface, which are read all at once.
func TestInterfaceGoesOnAfterAFailure(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	c.set("ethtool/enp1s0np0/stats/rx_discards_phy = 5\nethtool/enp1s0np0/stats/outbound_pci_stalled_wr = 5")
	c.read()
	since := c.at
	bus, err := os.ReadFile(filepath.Join(c.root, "ethtool/enp1s0np0/bus_info"))
	require.NoError(t, err)
	c.set("ethtool/enp1s0np0/bus_info = 0000:02:00.0")
	assert.NotContains(t, c.read(), "mlx5_0 rx_discards_phy")
	c.set("ethtool/enp1s0np0/stats/rx_discards_phy = 9\nethtool/enp1s0np0/bus_info = " + string(bus))
	got := c.read()
	assert.EqualValues(t, 4, got["mlx5_0 rx_discards_phy"].Count)
	assert.Equal(t, since, got["mlx5_0 rx_discards_phy"].Since)
	assert.Equal(t, since, got["mlx5_0 outbound_pci_stalled_wr"].Since)
}

func TestDevicesLeftOut(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.TwoSockets), func(name string) bool { return name == "mlx5_3" })
	got := c.read()
	require.NotEmpty(t, got)
	for _, r := range got {
		assert.Equal(t, "mlx5_3", r.Device)
	}
}

func TestBondAddsUpItsMembers(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.Bond), nil)
	first := c.read()
	assert.EqualValues(t, 5, first["mlx5_bond_0 outbound_pci_stalled_wr"].Count, "both ports have one PCIe link: that of the device's function")
	c.set("ethtool/ens1f0np0/stats/rx_prio3_pause = 110\nethtool/ens1f1np1/stats/rx_prio3_pause = 31")
	assert.EqualValues(t, 30, c.read()["mlx5_bond_0 rx_prio3_pause"].Count)
	c.set("devices/virtual/net/bond0/bonding/slaves = ens1f0np0\nethtool/ens1f0np0/stats/rx_prio3_pause = 111")
	left := c.read()["mlx5_bond_0 rx_prio3_pause"]
	assert.EqualValues(t, 31, left.Count, "a member that leaves takes nothing away")
	assert.False(t, left.Incomplete, "and counts nothing that is missing")
}

// Of a bond the sum is there while a member does not answer, and is not all.
func TestBondWithoutAnAnswerIsIncomplete(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.Bond), nil)
	assert.False(t, c.read()["mlx5_bond_0 rx_discards_phy"].Incomplete)
	bus, err := os.ReadFile(filepath.Join(c.root, "ethtool/ens1f1np1/bus_info"))
	require.NoError(t, err)
	c.set("ethtool/ens1f1np1/bus_info = 0000:02:00.0")
	assert.True(t, c.read()["mlx5_bond_0 rx_discards_phy"].Incomplete)
	c.set("ethtool/ens1f1np1/bus_info = " + string(bus))
	assert.False(t, c.read()["mlx5_bond_0 rx_discards_phy"].Incomplete)
}

// Counters of the InfiniBand specification stay where they are at their highest value.
func TestFullCountersAreIncomplete(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	const counters = "class/infiniband/mlx5_0/ports/1/counters/"
	for name, full := range map[string]uint64{"link_downed": 255, "symbol_error": 65535, "local_link_integrity_errors": 15, "port_xmit_wait": 4294967295} {
		c.set(fmt.Sprintf("%s%s = %d", counters, name, full-1))
		assert.False(t, c.read()["mlx5_0 "+name].Incomplete, name)
		c.set(fmt.Sprintf("%s%s = %d", counters, name, full))
		assert.True(t, c.read()["mlx5_0 "+name].Incomplete, name)
	}
	c.set("class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence = 4294967295")
	assert.False(t, c.read()["mlx5_0 out_of_sequence"].Incomplete, "it wraps")
}

// In a container without the host's network another interface may have the name.
func TestAnotherInterfaceOfTheNameIsNotBelieved(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	c.set("ethtool/enp1s0np0/bus_info = 0000:02:00.0")
	c.read()
	got := c.read()
	assert.NotContains(t, got, "mlx5_0 rx_discards_phy")
	assert.Contains(t, got, "mlx5_0 out_of_sequence")
	assert.Contains(t, c.log.String(), "not the device's")
}

func TestCountersOfEFA(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.EFA), nil)
	c.read()
	c.set("class/infiniband/rdmap0s6/ports/1/hw_counters/tx_bytes = 1500")
	got := c.read()["rdmap0s6 tx_bytes"]
	assert.EqualValues(t, 500, got.Int())
	assert.Equal(t, MetricPortIO, got.Counter.Metric)
}

func TestUnpluggedDevice(t *testing.T) {
	c := count(t, fabrictest.Tree(t, fabrictest.SingleRoCE), nil)
	require.NotEmpty(t, c.read())
	require.NoError(t, os.Remove(filepath.Join(c.root, "class/infiniband/mlx5_0")))
	assert.Empty(t, c.read())
	assert.Empty(t, c.reader.totals)
	assert.Empty(t, c.log.String(), "no failure")
}
