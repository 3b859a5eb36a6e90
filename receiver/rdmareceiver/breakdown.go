package rdmareceiver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// MetricAttribute is an attribute that metrics have by option. Each multiplies
// the number of series.
type MetricAttribute string

// The values of metric_attributes. The first two are for all metrics of
// processes, the others for those of queues.
const (
	MetricAttributePID      MetricAttribute = attributePID
	MetricAttributeRank     MetricAttribute = attributeRank
	MetricAttributeQPNumber MetricAttribute = attributeQPNumber
	MetricAttributeCQHandle MetricAttribute = attributeCQHandle
)

func metricAttributes() []MetricAttribute {
	return []MetricAttribute{MetricAttributePID, MetricAttributeRank, MetricAttributeQPNumber, MetricAttributeCQHandle}
}

func validateMetricAttributes(asked []MetricAttribute) error {
	for i, a := range asked {
		if !slices.Contains(metricAttributes(), a) {
			return fmt.Errorf("metric_attributes has %q: use some of %q", a, metricAttributes())
		}
		if slices.Contains(asked[:i], a) {
			return fmt.Errorf("metric_attributes has %q twice: remove one", a)
		}
	}
	return nil
}

// breakdown says into what the series of a job are split. The zero value splits
// nothing.
type breakdown struct {
	pid, rank, qp, cq bool
}

func newBreakdown(asked []MetricAttribute) breakdown {
	return breakdown{
		pid:  slices.Contains(asked, MetricAttributePID),
		rank: slices.Contains(asked, MetricAttributeRank),
		qp:   slices.Contains(asked, MetricAttributeQPNumber),
		cq:   slices.Contains(asked, MetricAttributeCQHandle),
	}
}

// owner is whose a series is: a job's or, as far as the breakdown goes, that of
// one of its ranks or processes.
type owner struct {
	job  jobKey
	rank number
	// pid is 0 where it is not asked for.
	pid uint32
}

// queue is which queue a series is of, as far as the breakdown goes.
type queue struct {
	qp number
	// cq is the address of the Completion Queue, 0 where it is not known or not
	// asked for.
	cq uint64
}

// number is one that may be missing, also where 0 is not.
type number struct {
	value int64
	known bool
}

func (b breakdown) ownerOf(id verbs.ProcessID, who *identity) owner {
	o := owner{job: who.job}
	if b.pid && !id.InKernel() {
		o.pid = id.TGID
	}
	if b.rank {
		o.rank = rankOf(who)
	}
	return o
}

func rankOf(who *identity) number {
	if rank := who.facts.Rank; rank != nil {
		return number{value: int64(*rank), known: true}
	}
	return number{}
}

func (b breakdown) queueOf(q *verbs.QueueInfo) queue {
	var of queue
	if b.qp {
		of.qp = number{value: int64(q.ID.QPNumber), known: true}
	}
	if b.cq {
		of.cq = q.SendCQ
	}
	return of
}

// lasting is true for an owner that outlives its processes: when a job is
// restarted, it and its ranks go on.
func (o owner) lasting() bool { return o.pid == 0 }

func (o owner) put(to pcommon.Map) {
	putPositive(to, attributePID, int64(o.pid))
	o.rank.put(to, attributeRank)
}

func (q queue) put(to pcommon.Map) {
	q.qp.put(to, attributeQPNumber)
	putCQ(to, q.cq)
}

func (n number) put(to pcommon.Map, key string) {
	if n.known {
		to.PutInt(key, n.value)
	}
}

// putCQ puts the handle of a Completion Queue: applications know it by its
// address only.
func putCQ(to pcommon.Map, address uint64) {
	if address != 0 {
		to.PutStr(attributeCQHandle, "0x"+strconv.FormatUint(address, 16))
	}
}

func (o owner) compare(other owner) int {
	return cmp.Or(compareJobs(o.job, other.job), o.rank.compare(other.rank), cmp.Compare(o.pid, other.pid))
}

func (q queue) compare(other queue) int {
	return cmp.Or(q.qp.compare(other.qp), cmp.Compare(q.cq, other.cq))
}

func (n number) compare(other number) int {
	return cmp.Or(compareBools(n.known, other.known), cmp.Compare(n.value, other.value))
}

// compareBools puts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
