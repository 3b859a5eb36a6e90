package backend

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// EveryMetric is all that the receiver can emit, with all attributes, hardware or
// not, as of now: a test of the receiver holds the file against its code.
func EveryMetric(t *testing.T) pmetric.Metrics {
	t.Helper()
	metrics, err := golden.ReadMetrics(testbed.File(t, "receiver/rdmareceiver/testdata/golden/every-metric.yaml"))
	require.NoError(t, err)
	now := time.Now()
	Stamp(metrics, now.Add(-time.Minute), now)
	return metrics
}

// Stamp makes all points those of a time, of series that began earlier.
func Stamp(metrics pmetric.Metrics, began, at time.Time) {
	eachPoint(metrics, func(point stamped) {
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
	})
}

type stamped interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
}

func eachPoint(metrics pmetric.Metrics, do func(stamped)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				eachOf(metric, do)
			}
		}
	}
}

func eachOf(metric pmetric.Metric, do func(stamped)) {
	switch metric.Type() {
	case pmetric.MetricTypeExponentialHistogram:
		for _, point := range metric.ExponentialHistogram().DataPoints().All() {
			do(point)
		}
	case pmetric.MetricTypeSum:
		for _, point := range metric.Sum().DataPoints().All() {
			do(point)
		}
	case pmetric.MetricTypeGauge:
		for _, point := range metric.Gauge().DataPoints().All() {
			do(point)
		}
	}
}

// Take sends metrics to Prometheus over OTLP.
func (p *Prometheus) Take(ctx context.Context, metrics pmetric.Metrics) error {
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	if err != nil {
		return err
	}
	url := p.OTLP + "/v1/metrics"
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

// Labels returns the labels of each metric of the receiver that Prometheus has had
// within a minute, by its name.
func (p *Prometheus) Labels(t *testing.T) map[string]map[string]bool {
	t.Helper()
	now := time.Now()
	series, _, err := p.API.Series(t.Context(), []string{`{__name__=~"rdma_.*"}`}, now.Add(-time.Minute), now.Add(time.Minute))
	require.NoError(t, err)
	all := map[string]map[string]bool{}
	for _, s := range series {
		name := string(s["__name__"])
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		for label := range s {
			all[name][string(label)] = true
		}
	}
	return all
}
