package radar

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestQuantilesAreOfTheLastMinutes(t *testing.T) {
	s := opened()
	fast, slow := bucketOf(2*time.Microsecond), bucketOf(500*time.Microsecond)
	// What was slow in the first minute is out of the figures three minutes later.
	s.Look(at(0), snapshot(queue(trainer, 1, nil)), nil)
	s.Look(at(10), snapshot(queue(trainer, 1, map[int]uint32{slow: 1000})), nil)
	first := s.View(at(10), 0).Queues
	assert.EqualValues(t, 10e9, first.Over)
	assert.Equal(t, []int64{int64(verbs.QueueBucketEdge(slow))}, first.P50)
	for second := 60; second <= 180; second += 60 {
		s.Look(at(second), snapshot(queue(trainer, 1, map[int]uint32{slow: 1000, fast: uint32(second)})), nil)
	}
	last := s.View(at(180), 0).Queues
	assert.EqualValues(t, 60e9, last.Over)
	assert.Equal(t, []uint64{60}, last.Completions)
	assert.Equal(t, []int64{int64(verbs.QueueBucketEdge(fast))}, last.P999)
}

func TestQuantiles(t *testing.T) {
	for _, test := range []struct {
		counts   map[int]uint64
		perMille uint64
		bucket   int
	}{
		{map[int]uint64{5: 1}, 500, 5},
		{map[int]uint64{5: 1}, 999, 5},
		{map[int]uint64{5: 99, 9: 1}, 990, 5},
		{map[int]uint64{5: 98, 9: 2}, 990, 9},
		{map[int]uint64{5: 999, 9: 1}, 999, 5},
		{map[int]uint64{5: 999, 9: 1}, 1000, 9},
		{map[int]uint64{verbs.QueueBuckets - 1: 3}, 500, verbs.QueueBuckets - 1},
	} {
		var d durations
		for bucket, n := range test.counts {
			d[bucket] = n
		}
		assert.EqualValues(t, verbs.QueueBucketEdge(test.bucket), d.quantile(d.total(), test.perMille), "%v", test)
	}
	var none durations
	assert.Zero(t, none.quantile(0, 500))
}

func TestWorstIsExactWhereItWasReported(t *testing.T) {
	edge := int64(verbs.QueueBucketEdge(bucketOf(450 * time.Microsecond)))
	assert.EqualValues(t, 450_000, worst(edge, 450_000))
	assert.Equal(t, edge, worst(edge, 0), "none was reported")
	assert.Equal(t, edge, worst(edge, 60_000), "one that was not reported was longer")
	assert.Equal(t, edge, worst(edge, edge+1), "it was longer ago")
}

func TestRatesAreOfTheLastTwoLooks(t *testing.T) {
	s := opened()
	s.Look(at(0), snapshot(queue(trainer, 1, map[int]uint32{10: 100})), nil)
	s.Look(at(2), snapshot(queue(trainer, 1, map[int]uint32{10: 150})), nil)
	view := s.View(at(2), 0)
	assert.Equal(t, []float64{25}, view.Queues.Rate)
	assert.Equal(t, []float64{25 * 4096}, view.Queues.Throughput)
	assert.Equal(t, 25.0, view.Now.Completions)
}

func TestUnsyncedQueuesAreCounted(t *testing.T) {
	s := opened()
	unsynced := queue(trainer, 2, nil)
	unsynced.State = verbs.QueueUnsynced
	s.Look(at(0), snapshot(queue(trainer, 1, nil), unsynced), nil)
	assert.Equal(t, Pace{Queues: 2, Untimed: 1}, s.View(at(0), 0).Now)
}

// A node with as many queues as the design speaks of.
func manyQueues(n int, count uint32) *verbs.Snapshot {
	queues := make([]verbs.QueueInfo, 0, n)
	for i := range n {
		q := queue(verbs.ProcessID{TGID: uint32(1000 + i%16)}, uint32(i), map[int]uint32{10: count, 11: count / 2, 20: count / 100})
		q.Path.RemoteGID[15] = byte(i)
		queues = append(queues, q)
	}
	return snapshot(queues...)
}

func TestTableHasARowOfEachQueue(t *testing.T) {
	s := opened()
	s.Look(at(0), manyQueues(4096, 100), nil)
	table := s.View(at(0), 0).Queues
	require.Equal(t, 4096, table.Len())
	assert.Len(t, table.Processes, 16)
	assert.Len(t, table.Peers, 256)
	for i := range table.Len() {
		assert.EqualValues(t, 1000+i%16, table.Processes[table.Process[i]].PID)
	}
}

// What a look costs while nobody looks, once a second.
func BenchmarkLook4096(b *testing.B) {
	s := opened()
	looks := []*verbs.Snapshot{manyQueues(4096, 100), manyQueues(4096, 300)}
	for i := 0; b.Loop(); i++ {
		s.Look(at(i), looks[i%2], nil)
	}
}

// What a view costs, once a second while somebody looks.
func BenchmarkView4096(b *testing.B) {
	s := opened()
	for i := range 200 {
		s.Look(at(i), manyQueues(4096, uint32(100*i)), nil)
	}
	for b.Loop() {
		text, err := json.Marshal(s.View(at(200), at(180).UnixMilli()))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(text)), "B/view")
	}
}
