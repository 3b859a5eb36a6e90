package otlp

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Point is one data point of a sum, a gauge or an exponential histogram.
type Point struct {
	Service    string
	Metric     string
	Attributes map[string]string
	Time       time.Time
	// Value is that of a sum or gauge, the count of a histogram.
	Value float64
	// Histogram is set for an exponential histogram.
	Histogram *Histogram
	// Gone marks a point that says its series has ended.
	Gone bool
}

// Match selects points: by service and metric when they are not empty, and by
// every attribute listed. The value "" asks for the attribute to be absent.
type Match struct {
	Service    string
	Metric     string
	Attributes map[string]string
}

func (m Match) takes(p *Point) bool {
	if m.Service != "" && m.Service != p.Service || m.Metric != "" && m.Metric != p.Metric {
		return false
	}
	for key, value := range m.Attributes {
		if p.Attributes[key] != value {
			return false
		}
	}
	return true
}

// Metrics is data points in the order of their export.
type Metrics []Point

// Metrics returns the points exported since the last call.
func (t *Tail) Metrics() (Metrics, error) {
	var all Metrics
	err := t.eachLine(func(line []byte) error {
		m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		if err != nil {
			return err
		}
		for _, rm := range m.ResourceMetrics().All() {
			all = appendResource(all, rm)
		}
		return nil
	})
	return all, err
}

func appendResource(all Metrics, rm pmetric.ResourceMetrics) Metrics {
	service, _ := rm.Resource().Attributes().Get("service.name")
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			all = appendMetric(all, service.AsString(), m)
		}
	}
	return all
}

func appendMetric(all Metrics, service string, m pmetric.Metric) Metrics {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return appendNumbers(all, service, m.Name(), m.Sum().DataPoints())
	case pmetric.MetricTypeGauge:
		return appendNumbers(all, service, m.Name(), m.Gauge().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			all = append(all, Point{
				Service: service, Metric: m.Name(), Attributes: stringMap(dp.Attributes()), Time: dp.Timestamp().AsTime(),
				Value: float64(dp.Count()), Histogram: histogramOf(dp), Gone: dp.Flags().NoRecordedValue(),
			})
		}
	}
	return all
}

func appendNumbers(all Metrics, service, name string, points pmetric.NumberDataPointSlice) Metrics {
	for _, dp := range points.All() {
		value := dp.DoubleValue()
		if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(dp.IntValue())
		}
		all = append(all, Point{
			Service: service, Metric: name, Attributes: stringMap(dp.Attributes()), Time: dp.Timestamp().AsTime(),
			Value: value, Gone: dp.Flags().NoRecordedValue(),
		})
	}
	return all
}

func stringMap(attributes pcommon.Map) map[string]string {
	m := make(map[string]string, attributes.Len())
	for key, value := range attributes.All() {
		m[key] = value.AsString()
	}
	return m
}

// Select returns the matching points in the order of the file.
func (all Metrics) Select(m Match) Metrics {
	var selected Metrics
	for i := range all {
		if m.takes(&all[i]) {
			selected = append(selected, all[i])
		}
	}
	return selected
}

// Total adds up the latest values of all matching series. Cumulative series
// that ended count with their last value.
func (all Metrics) Total(m Match) float64 {
	total := 0.0
	for _, p := range all.latest(m) {
		total += p.Value
	}
	return total
}

// Histogram merges the latest histograms of all matching series.
func (all Metrics) Histogram(m Match) Histogram {
	var merged Histogram
	for _, p := range all.latest(m) {
		if p.Histogram != nil {
			merged.add(p.Histogram)
		}
	}
	return merged
}

// Latest returns the last point of every series that was recorded.
func (all Metrics) Latest() Metrics {
	var last Metrics
	for _, p := range all.latest(Match{}) {
		last = append(last, *p)
	}
	return last
}

func (all Metrics) latest(m Match) []*Point {
	last := map[string]*Point{}
	for i := range all {
		if p := &all[i]; m.takes(p) && !p.Gone {
			last[p.series()] = p
		}
	}
	return slices.Collect(maps.Values(last))
}

func (p *Point) series() string {
	key := p.Service + "\x00" + p.Metric
	for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
		key += "\x00" + name + "\x00" + p.Attributes[name]
	}
	return key
}
