package rdmareceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// finish gives the points of a batch what the generated builder cannot: it
// takes away attributes without a value, adds those of owner and queue, marks
// points that end a series and points that overflowed.
func finish(metrics pmetric.MetricSlice, of point) {
	noValue := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	for i := range metrics.Len() {
		eachPoint(metrics.At(i), func(at dataPoint) {
			at.Attributes().RemoveIf(func(_ string, v pcommon.Value) bool { return v.AsString() == "" })
			of.key.owner.put(at.Attributes())
			of.key.queue.put(at.Attributes())
			if of.key.overflow {
				at.Attributes().Clear()
				at.Attributes().PutBool(attributeOverflow, true)
			}
			if of.ended {
				at.SetFlags(noValue)
			}
		})
	}
}

// dataPoint is what every kind of point has.
type dataPoint interface {
	Attributes() pcommon.Map
	SetFlags(pmetric.DataPointFlags)
}

// eachPoint calls f with every point of a metric.
func eachPoint(metric pmetric.Metric, f func(dataPoint)) {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		eachOf(metric.Gauge().DataPoints(), f)
	case pmetric.MetricTypeSum:
		eachOf(metric.Sum().DataPoints(), f)
	case pmetric.MetricTypeHistogram:
		eachOf(metric.Histogram().DataPoints(), f)
	case pmetric.MetricTypeExponentialHistogram:
		eachOf(metric.ExponentialHistogram().DataPoints(), f)
	case pmetric.MetricTypeSummary, pmetric.MetricTypeEmpty:
		// The receiver makes none.
	}
}

type pointSlice[P dataPoint] interface {
	Len() int
	At(int) P
}

func eachOf[P dataPoint](points pointSlice[P], f func(dataPoint)) {
	for i := range points.Len() {
		f(points.At(i))
	}
}

// merge moves metrics into others, points of the same name together. An end
// whose attributes are there already is dropped: the series lives on under the
// attributes that the user has kept.
func merge(from, into pmetric.MetricSlice, ended bool) {
	for i := range from.Len() {
		metric := from.At(i)
		if existing, ok := find(into, metric.Name()); ok {
			if ended {
				dropPointsOf(metric, existing)
			}
			movePoints(metric, existing)
			continue
		}
		metric.MoveTo(into.AppendEmpty())
	}
}

func find(metrics pmetric.MetricSlice, name string) (pmetric.Metric, bool) {
	for i := range metrics.Len() {
		if metrics.At(i).Name() == name {
			return metrics.At(i), true
		}
	}
	return pmetric.Metric{}, false
}

// dropPointsOf drops the points whose attributes are those of a point of the
// other.
func dropPointsOf(metric, other pmetric.Metric) {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		metric.Gauge().DataPoints().RemoveIf(func(at pmetric.NumberDataPoint) bool { return hasPoint(other, at) })
	case pmetric.MetricTypeSum:
		metric.Sum().DataPoints().RemoveIf(func(at pmetric.NumberDataPoint) bool { return hasPoint(other, at) })
	case pmetric.MetricTypeHistogram:
		metric.Histogram().DataPoints().RemoveIf(func(at pmetric.HistogramDataPoint) bool { return hasPoint(other, at) })
	case pmetric.MetricTypeExponentialHistogram:
		points := metric.ExponentialHistogram().DataPoints()
		points.RemoveIf(func(at pmetric.ExponentialHistogramDataPoint) bool { return hasPoint(other, at) })
	case pmetric.MetricTypeSummary, pmetric.MetricTypeEmpty:
		// The receiver makes none.
	}
}

func movePoints(from, into pmetric.Metric) {
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		from.Gauge().DataPoints().MoveAndAppendTo(into.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		from.Sum().DataPoints().MoveAndAppendTo(into.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		from.Histogram().DataPoints().MoveAndAppendTo(into.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		from.ExponentialHistogram().DataPoints().MoveAndAppendTo(into.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary, pmetric.MetricTypeEmpty:
		// The receiver makes none.
	}
}

func hasPoint(metric pmetric.Metric, like dataPoint) bool {
	found := false
	eachPoint(metric, func(at dataPoint) { found = found || at.Attributes().Equal(like.Attributes()) })
	return found
}

// exponentialPoints and explicitPoints return the points of a histogram, which
// becomes one of that kind if it is new.
func exponentialPoints(metric pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
	if metric.Type() != pmetric.MetricTypeExponentialHistogram {
		histogram := metric.SetEmptyExponentialHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return metric.ExponentialHistogram().DataPoints()
}

func explicitPoints(metric pmetric.Metric) pmetric.HistogramDataPointSlice {
	if metric.Type() != pmetric.MetricTypeHistogram {
		histogram := metric.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return metric.Histogram().DataPoints()
}
