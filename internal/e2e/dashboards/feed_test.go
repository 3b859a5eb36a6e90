//go:build backends

package dashboards

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
)

// everyMetric is all that the receiver can emit, with all attributes, hardware or
// not: a test of the receiver holds the file against its code.
func everyMetric(t *testing.T) pmetric.Metrics {
	t.Helper()
	metrics, err := golden.ReadMetrics("../../../receiver/rdmareceiver/testdata/golden/every-metric.yaml")
	require.NoError(t, err)
	return metrics
}

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
	every := everyMetric(t)
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
		for i := range metrics.ResourceMetrics().Len() {
			rm := metrics.ResourceMetrics().At(i)
			rm.Resource().Attributes().PutStr("host.name", fmt.Sprintf("fed-%d", node))
			for j := range rm.ScopeMetrics().At(0).Metrics().Len() {
				s.fill(rm.ScopeMetrics().At(0).Metrics().At(j))
			}
		}
		if err := post(ctx, to.OTLP+"/v1/metrics", metrics); err != nil {
			return err
		}
	}
	return nil
}

func post(ctx context.Context, url string, metrics pmetric.Metrics) error {
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if text, _ := io.ReadAll(response.Body); response.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s to metrics: %s", url, response.Status, text)
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
		points := metric.ExponentialHistogram().DataPoints()
		for i := range points.Len() {
			s.fillHistogram(points.At(i))
		}
	case pmetric.MetricTypeSum:
		s.fillNumbers(metric.Name(), metric.Sum().DataPoints(), metric.Sum().IsMonotonic())
	case pmetric.MetricTypeGauge:
		s.fillNumbers(metric.Name(), metric.Gauge().DataPoints(), false)
	}
}

func (s sample) fillHistogram(point pmetric.ExponentialHistogramDataPoint) {
	s.stamp(point)
	point.SetCount(point.Count() * s.steps())
	point.SetSum(point.Sum() * float64(s.steps()))
	counts := point.Positive().BucketCounts()
	for i := range counts.Len() {
		counts.SetAt(i, counts.At(i)*s.steps())
	}
	point.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
}

func (s sample) fillNumbers(name string, points pmetric.NumberDataPointSlice, cumulative bool) {
	for i := range points.Len() {
		point := points.At(i)
		s.stamp(point)
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

// stamp sets the times of a point.
func (s sample) stamp(point interface {
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
},
) {
	point.SetStartTimestamp(pcommon.NewTimestampFromTime(s.began))
	point.SetTimestamp(pcommon.NewTimestampFromTime(s.at))
}
