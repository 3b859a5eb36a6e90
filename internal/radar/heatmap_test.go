package radar

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func columns(looks ...*verbs.Snapshot) []Column {
	s := opened()
	for i, l := range looks {
		s.Look(at(i), l, nil)
	}
	return s.View(at(len(looks)), 1).Heatmap.Columns
}

func TestColumnsCountWhatIsNew(t *testing.T) {
	got := columns(
		snapshot(queue(trainer, 1, map[int]uint32{10: 5})),
		snapshot(queue(trainer, 1, map[int]uint32{10: 8, 12: 1})),
		snapshot(queue(trainer, 1, map[int]uint32{10: 8, 12: 1})),
	)
	require.Len(t, got, 2)
	assert.Equal(t, Column{At: at(1).UnixMilli(), Span: 1000, First: 10, Counts: []uint64{3, 0, 1}}, got[0])
	assert.Empty(t, got[1].Counts)
}

// Queues move when others end before them.
func TestColumnsFollowQueuesThatMove(t *testing.T) {
	got := columns(
		snapshot(queue(trainer, 1, map[int]uint32{10: 100}), queue(trainer, 2, map[int]uint32{11: 50})),
		snapshot(queue(trainer, 2, map[int]uint32{11: 53}), queue(trainer, 3, map[int]uint32{9: 2})),
	)
	require.Len(t, got, 1)
	assert.Equal(t, 9, got[0].First)
	assert.Equal(t, []uint64{2, 0, 3}, got[0].Counts, "3 has come since, and all it did is new")
}

func TestColumnsOfAnotherQueueOfTheSameName(t *testing.T) {
	again := queue(trainer, 1, map[int]uint32{10: 4})
	again.Traffic.Generation = 2
	got := columns(snapshot(queue(trainer, 1, map[int]uint32{10: 100})), snapshot(again))
	require.Len(t, got, 1)
	assert.Equal(t, []uint64{4}, got[0].Counts)
}

// Counts are of 32 bits.
func TestColumnsOfCountsThatWrap(t *testing.T) {
	got := columns(
		snapshot(queue(trainer, 1, map[int]uint32{10: 1<<32 - 3})),
		snapshot(queue(trainer, 1, map[int]uint32{10: 2})),
	)
	require.Len(t, got, 1)
	assert.Equal(t, []uint64{5}, got[0].Counts)
}

func TestHeatmapKeepsTheNewestInOrder(t *testing.T) {
	var h heatmap
	for i := range maxColumns + 10 {
		h.add(Column{At: int64(i + 1)})
	}
	all := h.view(0).Columns
	require.Len(t, all, maxColumns)
	assert.EqualValues(t, 11, all[0].At)
	assert.EqualValues(t, maxColumns+10, all[maxColumns-1].At)
	assert.Len(t, h.view(0).Edges, verbs.QueueBuckets)

	newest := h.view(maxColumns + 8)
	require.Len(t, newest.Columns, 2)
	assert.Empty(t, newest.Edges, "they were told in the first view")
}

func TestEdgesRise(t *testing.T) {
	all := edges()
	for i := 1; i < len(all); i++ {
		assert.Greater(t, all[i], all[i-1])
	}
	assert.Less(t, all[0], int64(200*time.Nanosecond))
}
