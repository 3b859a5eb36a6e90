package radar

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A node whose clock was wrong when it started has it set back later.
func TestClockThatIsSetBack(t *testing.T) {
	s := opened()
	fast, slow := bucketOf(2*time.Microsecond), bucketOf(500*time.Microsecond)
	const hour = 3600
	for second := range 120 {
		s.Look(at(hour+second), snapshot(queue(trainer, 1, map[int]uint32{slow: uint32(second)})), nil)
	}
	b := burst(1, hour+100, "a", 100)
	s.Judge([]Burst{b})
	s.Slow([]Request{{At: at(hour + 100).UnixMilli(), Excess: 5}})
	for second := range 180 {
		s.Look(at(second), snapshot(queue(trainer, 1, map[int]uint32{slow: 119, fast: uint32(second)})), nil)
		view := s.View(at(second), at(second-20).UnixMilli())
		assert.LessOrEqual(t, len(view.Heatmap.Columns), 20)
		assert.GreaterOrEqual(t, view.Queues.Over, int64(0))
		assert.LessOrEqual(t, view.Queues.Over, int64(2*time.Minute))
		assert.Empty(t, view.Lost)
		assert.Empty(t, view.Slowest)
		for _, c := range view.Heatmap.Columns {
			assert.Positive(t, c.Span)
		}
	}
	assert.Equal(t, []int64{int64(verbs.QueueBucketEdge(fast))}, s.View(at(180), 0).Queues.P999)
}
