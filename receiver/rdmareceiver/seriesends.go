package rdmareceiver

import (
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// seriesEnds ends the series that were there the last time and are no more, each
// with one point that has no recorded value. Its zero value is ready for use.
type seriesEnds struct {
	last pmetric.MetricSlice
	keys map[string]bool

	// mu guards unsaid, the ends that no pipeline took, nil without any.
	mu     sync.Mutex
	unsaid *pmetric.MetricSlice
}

// keep takes over ends that were not exported, to add them once more.
func (s *seriesEnds) keep(ends pmetric.MetricSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaid == nil {
		s.unsaid = new(pmetric.NewMetricSlice())
	}
	merge(ends, *s.unsaid, true)
}

func (s *seriesEnds) takeUnsaid() pmetric.MetricSlice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaid == nil {
		return pmetric.NewMetricSlice()
	}
	unsaid := *s.unsaid
	s.unsaid = nil
	return unsaid
}

// end adds the ends to what is there now, and returns a copy of them.
func (s *seriesEnds) end(metrics pmetric.MetricSlice, now pcommon.Timestamp) pmetric.MetricSlice {
	present := map[string]bool{}
	for i := range metrics.Len() {
		eachNumber(metrics.At(i), func(at pmetric.NumberDataPoint) { present[keyOf(metrics.At(i).Name(), at)] = true })
	}
	ends := endsOf(s.takeUnsaid(), present, now)
	if s.anyGone(present) {
		merge(endsOf(s.last, present, now), ends, true)
	}
	s.last, s.keys = pmetric.NewMetricSlice(), present
	metrics.CopyTo(s.last)
	added := pmetric.NewMetricSlice()
	ends.CopyTo(added)
	merge(ends, metrics, false)
	return added
}

func (s *seriesEnds) anyGone(present map[string]bool) bool {
	for key := range s.keys {
		if !present[key] {
			return true
		}
	}
	return false
}

// endsOf turns the points that are no more into their ends.
func endsOf(before pmetric.MetricSlice, present map[string]bool, now pcommon.Timestamp) pmetric.MetricSlice {
	before.RemoveIf(func(metric pmetric.Metric) bool {
		left := 0
		numbersOf(metric).RemoveIf(func(at pmetric.NumberDataPoint) bool {
			if present[keyOf(metric.Name(), at)] {
				return true
			}
			left++
			at.SetTimestamp(now)
			at.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			return false
		})
		return left == 0
	})
	return before
}

func eachNumber(metric pmetric.Metric, f func(pmetric.NumberDataPoint)) {
	points := numbersOf(metric)
	for i := range points.Len() {
		f(points.At(i))
	}
}

// numbersOf returns the points of a sum or a gauge.
func numbersOf(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	if metric.Type() == pmetric.MetricTypeSum {
		return metric.Sum().DataPoints()
	}
	return metric.Gauge().DataPoints()
}

// keyOf names a series: the builder puts the attributes of a metric in one order.
func keyOf(metric string, at pmetric.NumberDataPoint) string {
	var key strings.Builder
	key.WriteString(metric)
	for name, value := range at.Attributes().All() {
		key.WriteString("\x00" + name + "\x00" + value.AsString())
	}
	return key.String()
}
