package rdmareceiver

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// sampledTree is a machine whose devices are sampled every ten seconds.
type sampledTree struct {
	root    string
	sampler *fabric.Sampler
	emitter *deviceEmitter
	at      time.Time
}

func sampleTree(t testing.TB, name string, cfg *Config) *sampledTree {
	t.Helper()
	s := &sampledTree{root: fabrictest.Tree(t, name), at: wallSeconds(0).AsTime()}
	reader, logger := fabric.NewReader(s.root), slog.New(slog.DiscardHandler)
	counters := fabric.NewCounterReader(reader, fabrictest.Ethtool{Root: s.root}, cfg.Counters.matcher(), logger, func() time.Time { return s.at })
	s.sampler = fabric.NewSampler(reader, counters, cfg.Devices.matcher(), logger)
	s.emitter = newDeviceEmitter(cfg, receivertest.NewNopSettings(metadata.Type), theSurroundings())
	return s
}

func (s *sampledTree) collect() pmetric.Metrics {
	s.at = s.at.Add(10 * time.Second)
	sample := s.sampler.Sample()
	metrics := pmetric.NewMetrics()
	s.emitter.emit(metrics, &sample, map[string]uint64{})
	return metrics
}

func defaultConfig() *Config { return createDefaultConfig().(*Config) }

// grown is what happens to the counters of a tree between two samples: every
// counter that a single RoCE port can have.
const grown = `
	class/infiniband/mlx5_0/ports/1/counters/port_xmit_data = 250000100
	class/infiniband/mlx5_0/ports/1/counters/port_rcv_packets = 500001
	class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait = 77
	class/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err = 4
	class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent = 83
	ethtool/enp1s0np0/stats/rx_prio3_pause = 123
	ethtool/enp1s0np0/stats/rx_prio3_pause_duration = 5000
	ethtool/enp1s0np0/stats/rx_prio3_buf_discard = 2
	ethtool/enp1s0np0/stats/outbound_pci_stalled_wr_events = 10
	ethtool/enp1s0np0/stats/rx_corrected_bits_phy = 17750740
	ethtool/enp1s0np0/stats/link_down_events_phy = 3
	bus/pci/devices/0000:01:00.0/aer_dev_correctable = RxErr 1\nBadTLP 3\nTOTAL_ERR_COR 4`

// Every shape of a machine gives just what its golden file holds.
func TestGoldenDeviceMetrics(t *testing.T) {
	for _, name := range fabrictest.Names() {
		t.Run(name, func(t *testing.T) {
			s := sampleTree(t, name, defaultConfig())
			metrics := s.collect()
			if name == fabrictest.SingleRoCE {
				fabrictest.Add(t, s.root, grown)
				metrics = s.collect()
			}
			if name == fabrictest.NoRDMA {
				require.Zero(t, metrics.DataPointCount(), "nothing is invented")
				return
			}
			if name == fabrictest.TwoSockets {
				// Eight times the same is one time enough.
				keepDevices(metrics, "mlx5_0", "mlx5_11")
			}
			requireGoldenPoints(t, "devices-"+name, metrics)
		})
	}
}

// requireGoldenPoints compares points written one a line.
func requireGoldenPoints(t *testing.T, name string, metrics pmetric.Metrics) {
	t.Helper()
	require.Equal(t, 1, metrics.ResourceMetrics().Len())
	var lines []string
	for key, value := range metrics.ResourceMetrics().At(0).Resource().Attributes().All() {
		lines = append(lines, key+" = "+value.AsString())
	}
	eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
		eachNumber(metric, func(at pmetric.NumberDataPoint) { lines = append(lines, lineOf(metric.Name(), at)) })
	})
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "golden", name+".txt")
	if updating() {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		t.Error("the golden file was written")
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func lineOf(metric string, at pmetric.NumberDataPoint) string {
	var attributes []string
	for key, value := range at.Attributes().All() {
		attributes = append(attributes, fmt.Sprintf("%s=%v", key, value.AsRaw()))
	}
	slices.Sort(attributes)
	value := fmt.Sprint(at.IntValue())
	if at.ValueType() == pmetric.NumberDataPointValueTypeDouble {
		value = fmt.Sprint(at.DoubleValue())
	}
	if at.Flags().NoRecordedValue() {
		value = "no recorded value"
	}
	return fmt.Sprintf("%s{%s} = %s", metric, strings.Join(attributes, ", "), value)
}

func keepDevices(metrics pmetric.Metrics, names ...string) {
	eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
		numbersOf(metric).RemoveIf(func(at pmetric.NumberDataPoint) bool {
			device, _ := at.Attributes().Get(attributeDevice)
			for _, name := range names {
				if device.Str() == name {
					return false
				}
			}
			return true
		})
	})
}

func TestDeviceThatGoesEndsItsSeries(t *testing.T) {
	s := sampleTree(t, fabrictest.SRIOV, defaultConfig())
	first := pointsOf(s.collect(), "mlx5_1")
	require.NotEmpty(t, first)
	link := filepath.Join(s.root, "class/infiniband/mlx5_1")
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.NoError(t, os.Remove(link))
	gone := s.collect()
	ends := pointsOf(gone, "mlx5_1")
	assert.Len(t, ends, len(first), "each series ends")
	for _, at := range ends {
		assert.True(t, at.Flags().NoRecordedValue())
	}
	for _, at := range pointsOf(gone, "mlx5_0") {
		assert.False(t, at.Flags().NoRecordedValue())
	}
	assert.Empty(t, pointsOf(s.collect(), "mlx5_1"), "and ends once")

	require.NoError(t, os.Symlink(target, link))
	back := pointsOf(s.collect(), "mlx5_1")
	require.Len(t, back, len(first))
	assert.False(t, back[0].Flags().NoRecordedValue())
}

// A port that goes down is another series of rdma.port.up.
func TestPortGoesDown(t *testing.T) {
	s := sampleTree(t, fabrictest.SingleRoCE, defaultConfig())
	s.collect()
	fabrictest.Add(t, s.root, "class/infiniband/mlx5_0/ports/1/state = 1: DOWN")
	up := map[string]int64{}
	eachMetric(s.collect(), func(_ pcommon.Resource, metric pmetric.Metric) {
		if metric.Name() != "rdma.port.up" {
			return
		}
		eachNumber(metric, func(at pmetric.NumberDataPoint) {
			state, _ := at.Attributes().Get("rdma.port.state")
			if !at.Flags().NoRecordedValue() {
				up[state.Str()] = at.IntValue()
			}
		})
	})
	assert.Equal(t, map[string]int64{"DOWN": 0}, up)
}

func TestDevicesLeftOutByTheConfiguration(t *testing.T) {
	cfg := defaultConfig()
	cfg.Devices.Exclude = filters("mlx5_1", "")
	cfg.Counters.Exclude = filters("mlx5_0", "")
	metrics := sampleTree(t, fabrictest.SRIOV, cfg).collect()
	assert.Empty(t, pointsOf(metrics, "mlx5_1"))
	names := map[string]bool{}
	eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) { names[metric.Name()] = true })
	assert.True(t, names["rdma.port.up"])
	assert.False(t, names["rdma.port.io"], "its counters are not read")
}

// A sample that is no newer than the last is not emitted again, and one resource
// holds all that is of the host.
func TestSamplesAreEmittedOnce(t *testing.T) {
	s := sampleTree(t, fabrictest.SRIOV, defaultConfig())
	s.at = s.at.Add(time.Second)
	sample := s.sampler.Sample()
	into := pmetric.NewMetrics()
	hostResource(theHost().facts).CopyTo(into.ResourceMetrics().AppendEmpty().Resource())
	into.ResourceMetrics().At(0).ScopeMetrics().AppendEmpty()
	s.emitter.emit(into, nil, nil)
	require.Zero(t, into.DataPointCount())
	s.emitter.emit(into, &sample, nil)
	require.NotZero(t, into.DataPointCount())
	require.Equal(t, 1, into.ResourceMetrics().Len())
	again := pmetric.NewMetrics()
	s.emitter.emit(again, &sample, nil)
	assert.Zero(t, again.DataPointCount())
}

// pointsOf returns the points of a device.
func pointsOf(metrics pmetric.Metrics, device string) []pmetric.NumberDataPoint {
	var found []pmetric.NumberDataPoint
	eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
		eachNumber(metric, func(at pmetric.NumberDataPoint) {
			if name, ok := at.Attributes().Get(attributeDevice); ok && name.Str() == device {
				found = append(found, at)
			}
		})
	})
	return found
}

// fullSample has every counter and every attribute of a device.
func fullSample() fabric.Sample {
	at := wallSeconds(10).AsTime()
	bridge := fabric.PCIFunction{Address: "0000:17:00.0", ACS: &fabric.ACS{Supported: true}}
	link := fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: 16}
	sample := fabric.Sample{At: at, Devices: []fabric.DeviceState{{
		Device: fabric.Device{
			Name: "mlx5_0", Firmware: "28.39.3560", PCIAddress: "0000:18:00.1", NUMANode: pointer(0), Bond: &fabric.Bond{NetDev: "bond0"},
			Ports: []fabric.Port{{Number: 1, State: "ACTIVE", LinkLayer: "Ethernet", NetDev: "bond0", RateBitsPerSecond: 4e11}},
		},
		PCI: &fabric.PCIDevice{
			PCIFunction: fabric.PCIFunction{
				Address: "0000:18:00.1", Link: link, MaxLink: link,
				Control: &fabric.PCIeControl{RelaxedOrdering: true, MaxReadRequest: 512, MaxPayload: 256},
			},
			Bridges: []fabric.PCIFunction{bridge}, IOMMU: fabric.IOMMUPassthrough, PhysicalFunction: "0000:18:00.0",
		},
	}}}
	for i, counter := range fabric.Counters() {
		r := fabric.Reading{Device: "mlx5_0", Port: 1, Counter: &counter, Name: counter.Name, Count: uint64(i), Since: at}
		if counter.OfDevice() {
			r.Port = 0
		}
		if strings.Contains(counter.Name, "[p]") {
			r.Priority = pointer(3)
		}
		sample.Readings = append(sample.Readings, r)
	}
	return sample
}
