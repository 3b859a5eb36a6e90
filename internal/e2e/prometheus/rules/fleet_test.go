//go:build backends

package rules

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

// collectionInterval is the default of the receiver.
const collectionInterval = 10 * time.Second

// cause is the one that all slow requests of the fleet have.
const cause = "ecn_throttling"

// condition is how one device of one node is at a time.
type condition struct {
	// usually is how long most requests take. slow is whether some take half a
	// millisecond besides, for a cause.
	usually time.Duration
	slow    bool
}

// fleet is nodes that run one job, and what their receivers send to Prometheus.
type fleet struct {
	nodes, rails int
	at           func(node, rail int, after time.Duration) condition
}

func hostName(node int) string { return fmt.Sprintf("gpu-%04d", node) }

func deviceName(rail int) string { return fmt.Sprintf("mlx5_%d", rail) }

// device is what is counted of one device of one node.
type device struct {
	node, rail int
	durations  *histogram.Histogram
	counts     map[int32]int64
	excess     float64
	// incident is 1 while one is open, 0 once after it, and then not there.
	incident *float64

	names map[string]labels.Labels
	refs  map[string]storage.SeriesRef
}

// bucketOf is the bucket of a native histogram of schema 3 that holds a duration.
func bucketOf(d time.Duration) int32 {
	return int32(math.Ceil(math.Log2(d.Seconds()) * 8))
}

func newDevice(node, rail int) *device {
	d := &device{node: node, rail: rail, counts: map[int32]int64{}, names: map[string]labels.Labels{}, refs: map[string]storage.SeriesRef{}}
	for _, metric := range []struct {
		name string
		of   []string
	}{
		{"rdma_device_info_ratio", []string{"job", "otelcol-rdma"}},
		{"rdma_port_up_ratio", []string{"job", "otelcol-rdma", "rdma_device_port", "1", "rdma_port_state", "ACTIVE"}},
		{"rdma_active_incidents", []string{"job", "otelcol-rdma", "rdma_slow_cause", cause}},
		{"rdma_wqe_duration_seconds", []string{"job", "trainer", "slurm_job_id", "7", "rdma_operation_name", "rdma_write"}},
		{"rdma_wqe_excess_time_seconds_total", []string{"job", "trainer", "slurm_job_id", "7", "rdma_slow_cause", cause}},
		{"rdma_wqe_oldest_outstanding_seconds", []string{"job", "trainer", "slurm_job_id", "7"}},
	} {
		of := append([]string{"__name__", metric.name, "host_name", hostName(node), "rdma_device_name", deviceName(rail)}, metric.of...)
		d.names[metric.name] = labels.FromStrings(of...)
	}
	return d
}

// pass is an interval in which the device completed 10,000 requests.
func (d *device) pass(c condition) {
	const requests, late, lateBy = 10_000, 200, 450 * time.Microsecond
	// Nodes differ a little, as real ones do.
	d.counts[bucketOf(c.usually)+int32(d.node%4)] += requests - late
	last, had := c.usually, d.incident != nil && *d.incident > 0
	d.incident = nil
	if had {
		d.incident = new(0.0)
	}
	if c.slow {
		last = lateBy
		d.excess += (late * (lateBy - c.usually)).Seconds()
		d.incident = new(1.0)
	}
	d.counts[bucketOf(last)+int32(d.node%4)] += late
	d.durations = histogramOf(d.counts)
}

// histogramOf is a native histogram of schema 3 with these buckets.
func histogramOf(counts map[int32]int64) *histogram.Histogram {
	h := &histogram.Histogram{Schema: 3}
	var end int32
	var last int64
	for _, bucket := range sorted(counts) {
		count := counts[bucket]
		h.PositiveSpans = append(h.PositiveSpans, histogram.Span{Offset: bucket - end, Length: 1})
		h.PositiveBuckets = append(h.PositiveBuckets, count-last)
		h.Count += uint64(count)
		h.Sum += float64(count) * math.Exp2((float64(bucket)-0.5)/8)
		end, last = bucket+1, count
	}
	return h
}

// store adds the points of now.
func (d *device) store(t *testing.T, to storage.AppenderV2, now time.Time) {
	t.Helper()
	add := func(name string, v float64, h *histogram.Histogram) {
		ref, err := to.Append(d.refs[name], d.names[name], 0, now.UnixMilli(), v, h, nil, storage.AppendV2Options{})
		require.NoError(t, err, name)
		d.refs[name] = ref
	}
	add("rdma_device_info_ratio", 1, nil)
	add("rdma_port_up_ratio", 1, nil)
	add("rdma_wqe_duration_seconds", 0, d.durations)
	add("rdma_wqe_excess_time_seconds_total", d.excess, nil)
	add("rdma_wqe_oldest_outstanding_seconds", 1e-5, nil)
	if d.incident != nil {
		add("rdma_active_incidents", *d.incident, nil)
	}
}

// feed is where a fleet's points go.
type feed struct {
	fleet   fleet
	devices []*device
	storage *teststorage.TestStorage
}

func newFeed(t *testing.T, f fleet) *feed {
	t.Helper()
	to := &feed{fleet: f, storage: teststorage.New(t)}
	for node := range f.nodes {
		for rail := range f.rails {
			to.devices = append(to.devices, newDevice(node, rail))
		}
	}
	return to
}

// send stores what all receivers send at a time.
func (f *feed) send(t *testing.T, after time.Duration) {
	t.Helper()
	appender := f.storage.AppenderV2(context.Background())
	for _, d := range f.devices {
		d.pass(f.fleet.at(d.node, d.rail, after))
		d.store(t, appender, start.Add(after))
	}
	require.NoError(t, appender.Commit())
}
