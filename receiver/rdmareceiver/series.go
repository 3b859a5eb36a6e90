package rdmareceiver

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// instrument is one metric of the receiver.
type instrument uint8

// The instruments, in the order in which they are exported.
const (
	wqeDuration instrument = iota
	wqeStageTime
	wqeExcessTime
	wqeCompletions
	wqeSlowCompletions
	wqeOldestOutstanding
	ioBytes
	sqOutstanding
	sqLimit
	sqPeakOutstanding
	sqUtilization
	sqRejectedPosts
	rqOutstanding
	rqEmpty
	mrRegistrations
	mrRegistrationSize
	mrRegistrationTime
	mrDeregistrationTime
	mrRegions
	mrRegistered
	queueCount
	activeIncidents
	probeMode
	probeShare
	routeQueues
	routeThroughput
	routeDuration
	routeSlowCompletions
	numInstruments
)

// fold says how values that meet in one series are combined.
type fold uint8

const (
	// foldCounter adds up increases for as long as the job is remembered.
	foldCounter fold = iota
	// foldSum adds up what is true at the moment.
	foldSum
	// foldMax takes the highest of what is true at the moment, foldMin the lowest.
	foldMax
	foldMin
)

// fold says how the instrument combines values.
func (i instrument) fold() fold {
	switch i {
	case sqOutstanding, sqLimit, rqOutstanding, mrRegions, mrRegistered, queueCount, activeIncidents, probeMode, routeQueues, routeThroughput, routeSlowCompletions:
		return foldSum
	case wqeOldestOutstanding, sqPeakOutstanding, sqUtilization, routeDuration:
		return foldMax
	case probeShare:
		return foldMin
	default:
		return foldCounter
	}
}

// seriesKey names one metric series.
type seriesKey struct {
	owner      owner
	queue      queue
	route      routeKey
	instrument instrument
	device     string
	// detail is the operation, stage, cause, direction, kind of memory, queue state,
	// mode or quantile, where the instrument has one.
	detail string
	// errorType is the status or error number of a failure.
	errorType string
	// provider and function are what is probed, where the instrument is of probes.
	provider, function string
	// ofHost is true for what belongs to no process; owner is empty then.
	ofHost bool
	// overflow is true for the point that takes what finds no room.
	overflow bool
}

// series is the state of one metric series.
type series struct {
	// value is a count, bytes, bytes per second or nanoseconds; ratio is used by
	// sqUtilization and probeShare.
	value int64
	ratio float64
	// durations is used by wqeDuration.
	durations *durationSums
	exemplars []exemplar
	// touched is the number of the last snapshot that had a value for it.
	touched uint64
}

// durationSums is a histogram that grows.
type durationSums struct {
	histogram     verbs.Histogram
	sum, min, max time.Duration
}

func (d *durationSums) add(increase *durationSums) {
	for i, n := range increase.histogram.Counts {
		d.histogram.Counts[i] += n
	}
	d.sum += increase.sum
	if increase.min > 0 && (d.min == 0 || increase.min < d.min) {
		d.min = increase.min
	}
	d.max = max(d.max, increase.max)
}

func (d *durationSums) count() uint64 {
	var total uint64
	for _, n := range d.histogram.Counts {
		total += n
	}
	return total
}

// exemplar is one exported span, as a point of a histogram shows it.
type exemplar struct {
	seconds float64
	at      pcommon.Timestamp
	traceID pcommon.TraceID
	spanID  pcommon.SpanID
}

// compareKeys orders keys by owner, queue, instrument and attributes.
func compareKeys(a, b seriesKey) int {
	return cmp.Or(
		a.owner.compare(b.owner),
		a.queue.compare(b.queue),
		a.route.compare(b.route),
		cmp.Compare(a.instrument, b.instrument),
		cmp.Compare(a.device, b.device),
		cmp.Compare(a.detail, b.detail),
		cmp.Compare(a.errorType, b.errorType),
		cmp.Compare(a.provider, b.provider),
		cmp.Compare(a.function, b.function),
	)
}

func compareJobs(a, b jobKey) int {
	return cmp.Or(
		cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.service, b.service),
		cmp.Compare(a.slurmJob, b.slurmJob),
		cmp.Compare(a.slurmStep, b.slurmStep),
		cmp.Compare(a.container, b.container),
	)
}
