//go:build backends

package dashboards

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
)

const (
	fedNodes = 6
	// faultyNode has lost a port and a half of its PCIe lanes.
	faultyNode = fedNodes - 1
	step       = 10 * time.Second
	// past is for how long the nodes were there before the test, and lost for how
	// long the port has been: a rule asks how it was ten minutes ago.
	past = 12 * time.Minute
	lost = 2 * time.Minute
)

// feed sends every metric of some nodes to Prometheus: what they would have sent for
// the last minutes at once, and then goes on until the end of the test.
func feed(t *testing.T, to *backend.Prometheus) {
	t.Helper()
	began := time.Now().Add(-past)
	every := backend.EveryMetric(t)
	for at := began; at.Before(time.Now()); at = at.Add(step) {
		require.NoError(t, send(t.Context(), to, every, began, at))
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- keepSending(ctx, to, every, began) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-done)
	})
}

func keepSending(ctx context.Context, to *backend.Prometheus, every pmetric.Metrics, began time.Time) error {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-ticker.C:
			if err := send(ctx, to, every, began, at); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// send sends what all nodes have at a time.
func send(ctx context.Context, to *backend.Prometheus, every pmetric.Metrics, began, at time.Time) error {
	for node := range fedNodes {
		metrics := pmetric.NewMetrics()
		every.CopyTo(metrics)
		s := sample{node: node, began: began, at: at}
		for _, rm := range metrics.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr("host.name", fmt.Sprintf("fed-%d", node))
			for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
				s.fill(metric)
			}
		}
		backend.Stamp(metrics, began, at)
		if err := to.Take(ctx, metrics); err != nil {
			return err
		}
	}
	return nil
}

// sample makes the one collection that is on file that of a node at a time: what is
// cumulative grows by what is on file in every step.
type sample struct {
	node      int
	began, at time.Time
}

func (s sample) steps() uint64 { return uint64(s.at.Sub(s.began)/step) + 1 }

func (s sample) fill(metric pmetric.Metric) {
	switch metric.Type() {
	case pmetric.MetricTypeExponentialHistogram:
		for _, point := range metric.ExponentialHistogram().DataPoints().All() {
			s.fillHistogram(point)
		}
	case pmetric.MetricTypeSum:
		s.fillNumbers(metric.Name(), metric.Sum().DataPoints(), metric.Sum().IsMonotonic())
	case pmetric.MetricTypeGauge:
		s.fillNumbers(metric.Name(), metric.Gauge().DataPoints(), false)
	}
}

func (s sample) fillHistogram(point pmetric.ExponentialHistogramDataPoint) {
	point.SetCount(point.Count() * s.steps())
	point.SetSum(point.Sum() * float64(s.steps()))
	counts := point.Positive().BucketCounts()
	for i := range counts.Len() {
		counts.SetAt(i, counts.At(i)*s.steps())
	}
	point.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
}

func (s sample) fillNumbers(name string, points pmetric.NumberDataPointSlice, cumulative bool) {
	for _, point := range points.All() {
		switch {
		case cumulative && point.ValueType() == pmetric.NumberDataPointValueTypeInt:
			point.SetIntValue((point.IntValue() + 1) * int64(s.steps()))
		case cumulative:
			point.SetDoubleValue((point.DoubleValue() + 1e-3) * float64(s.steps()))
		case s.node == faultyNode && name == "rdma.device.pcie.bandwidth.negotiated":
			point.SetDoubleValue(point.DoubleValue() / 2)
		case s.node == faultyNode && name == "rdma.port.up" && s.at.Sub(s.began) > past-lost:
			point.SetIntValue(0)
		}
	}
}
