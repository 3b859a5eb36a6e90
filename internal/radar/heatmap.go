package radar

import (
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// maxColumns is how many columns are kept: half an hour at a look a second.
const maxColumns = 1800

// heatmap has the columns of late.
type heatmap struct {
	columns []Column
	// next is the place of the next one, once all are taken.
	next int
}

func (h *heatmap) add(c Column) {
	if len(h.columns) < maxColumns {
		h.columns = append(h.columns, c)
		return
	}
	h.columns[h.next] = c
	h.next = (h.next + 1) % maxColumns
}

// forgetAfter drops the columns that ended after a moment.
func (h *heatmap) forgetAfter(moment int64) {
	kept := h.view(0).Columns
	h.columns = slices.DeleteFunc(kept, func(c Column) bool { return c.At > moment })
	h.next = 0
}

// view returns the columns that ended after a moment, the oldest first.
func (h *heatmap) view(since int64) Heatmap {
	v := Heatmap{Columns: []Column{}}
	for _, part := range [][]Column{h.columns[h.next:], h.columns[:h.next]} {
		for _, c := range part {
			if c.At > since {
				v.Columns = append(v.Columns, c)
			}
		}
	}
	if since == 0 {
		v.Edges = edges()
	}
	return v
}

// edges are the upper edges of the buckets.
func edges() []int64 {
	all := make([]int64, verbs.QueueBuckets)
	for i := range all {
		all[i] = int64(verbs.QueueBucketEdge(i))
	}
	return all
}

// columnOf counts what completed between two looks.
func columnOf(before, now *look) Column {
	var sums durations
	slow := uint64(0)
	earlier := before.finder()
	for i := range now.queues {
		q := &now.queues[i]
		then := earlier.find(i, q)
		if q.Traffic.Durations != then.Durations {
			sums.addIncrease(&q.Traffic, then)
			slow += q.Traffic.Slow - then.Slow
		}
	}
	first, end := 0, len(sums)
	for first < end && sums[first] == 0 {
		first++
	}
	for end > first && sums[end-1] == 0 {
		end--
	}
	return Column{At: now.at, Span: now.at - before.at, First: first, Counts: append([]uint64{}, sums[first:end]...), Slow: slow}
}
