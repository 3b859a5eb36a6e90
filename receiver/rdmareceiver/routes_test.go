package rdmareceiver

import (
	"net/netip"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func withRoutes(c *Config) { c.Routes = true }

// routedQueue moved so many bytes, in a request of about 1 µs and a slow one of
// about 0.5 s for each.
func routedQueue(id verbs.ProcessID, qpn uint32, peer string, bytes uint64) verbs.QueueInfo {
	q := queueOf(id, qpn)
	q.Path = verbs.Path{
		LocalGID:  verbs.GID(netip.MustParseAddr("::ffff:10.0.0.1").As16()),
		RemoteGID: verbs.GID(netip.MustParseAddr(peer).As16()), GIDType: verbs.GIDTypeRoCEv2,
	}
	q.Traffic = verbs.Traffic{Generation: uint64(qpn), Bytes: bytes, Slow: bytes}
	q.Traffic.Durations[6], q.Traffic.Durations[43] = uint32(bytes), uint32(bytes)
	return q
}

// routedSnapshot has two queues to one peer, one to another, one on InfiniBand
// and one of a rank that is not known to a peer that is not known.
func routedSnapshot(bytes uint64) verbs.Snapshot {
	onInfiniBand := routedQueue(trainer, 4, "fe80::2", bytes)
	onInfiniBand.Device, onInfiniBand.Path.GIDType, onInfiniBand.Path.RemoteLID = "mlx5_1", verbs.GIDTypeIB, 43
	onInfiniBand.Path.LocalGID = verbs.GID(netip.MustParseAddr("fe80::1").As16())
	unknown := routedQueue(peer, 5, "::1", bytes)
	unknown.Path, unknown.Port, unknown.Traffic.Durations = verbs.Path{}, 0, [verbs.QueueBuckets]uint32{}
	return verbs.Snapshot{Queues: []verbs.QueueInfo{
		routedQueue(trainer, 1, "::ffff:10.0.0.2", bytes), routedQueue(trainer, 2, "::ffff:10.0.0.2", 2*bytes),
		routedQueue(trainer, 3, "::ffff:10.0.0.3", bytes), onInfiniBand, unknown,
	}}
}

func TestRoutesGolden(t *testing.T) {
	b := newBench(t, theHost().processes, withRoutes)
	b.collect(routedSnapshot(100))
	// What writes the file sorts its points.
	requireGoldenMetrics(t, "routes", b.collect(routedSnapshot(1100)), pmetrictest.IgnoreMetricDataPointsOrder())
}

// A route tells of the interval that ended, not of all that was.
func TestRoutesAreOfTheInterval(t *testing.T) {
	b := newBench(t, theHost().processes, withRoutes)
	b.collect(routedSnapshot(100))
	got := b.collect(routedSnapshot(1100))
	to := []string{attributePeerAddress, "10.0.0.2", attributeRank, "9", attributeDevicePort, "1"}
	assert.EqualValues(t, 2, value(t, got, "rdma.route.queues", to...).IntValue())
	assert.InDelta(t, 300, value(t, got, "rdma.route.throughput", to...).DoubleValue(), 0, "3,000 bytes in ten seconds")
	assert.EqualValues(t, 3000, value(t, got, "rdma.route.slow_completions", to...).IntValue())
	p99 := append([]string{"rdma.route.quantile", "p99"}, to...)
	assert.InDelta(t, verbs.QueueBucketEdge(43).Seconds(), value(t, got, "rdma.route.duration", p99...).DoubleValue(), 0)

	// Nothing is timed in the next: the durations end, the route stays.
	got = b.collect(routedSnapshot(1100))
	assert.True(t, value(t, got, "rdma.route.duration", p99...).Flags().NoRecordedValue())
	assert.InDelta(t, 0, value(t, got, "rdma.route.throughput", to...).DoubleValue(), 0)

	// One queue was replaced by another: what it did counts.
	replaced := routedSnapshot(1100)
	replaced.Ended = []verbs.QueueInfo{routedQueue(trainer, 1, "::ffff:10.0.0.2", 1200)}
	replaced.Queues[0] = routedQueue(trainer, 6, "::ffff:10.0.0.2", 50)
	got = b.collect(replaced)
	assert.EqualValues(t, 2, value(t, got, "rdma.route.queues", to...).IntValue())
	assert.InDelta(t, 15, value(t, got, "rdma.route.throughput", to...).DoubleValue(), 0, "100 and 50 bytes in ten seconds")

	// The process exits.
	last := routedSnapshot(1200)
	last.Exited = []verbs.ProcessID{trainer}
	got = b.collect(last)
	assert.True(t, value(t, got, "rdma.route.queues", to...).Flags().NoRecordedValue())
}

func TestRoutesAreOffByDefault(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	assert.Empty(t, values(b.collect(routedSnapshot(100)), "rdma.route.queues"))
}

// Routes over the bound of series add up like the others.
func TestRoutesOverTheBoundAreFolded(t *testing.T) {
	b := newBench(t, manyServices{}, func(c *Config) { c.Routes, c.MaxSeries = true, 100 })
	var snap verbs.Snapshot
	for pid := range uint32(60) {
		snap.Queues = append(snap.Queues, routedQueue(verbs.ProcessID{TGID: pid + 1}, 1, "::ffff:10.0.0.2", 10))
	}
	got := b.collect(snap)
	assert.LessOrEqual(t, got.DataPointCount(), 100)
	value(t, got, "rdma.route.queues", attributeOverflow, "true")
	total := int64(0)
	for _, point := range values(got, "rdma.route.queues") {
		total += point.IntValue()
	}
	assert.EqualValues(t, 60, total)
}

func TestRoutesNamePeers(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Routes, cfg.PeerAddresses = true, false
	require.ErrorContains(t, cfg.Validate(), "routes is true and peer_addresses is false")
}
