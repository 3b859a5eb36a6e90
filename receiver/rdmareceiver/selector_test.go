package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// slowCompletion is a completion on the device with the given excess time.
func slowCompletion(device string, wrID uint64, excess time.Duration) verbs.Completion {
	return verbs.Completion{
		WorkRequest: verbs.WorkRequest{Device: device, WRID: wrID, Operation: verbs.OpRDMAWrite, Posted: 1e9},
		Requests:    1, Delivered: 1e9 + uint64(excess), Threshold: 50 * time.Microsecond,
	}
}

func failedCompletion(device string, wrID uint64, status verbs.Status) verbs.Completion {
	c := slowCompletion(device, wrID, time.Microsecond)
	c.Status = status
	return c
}

// floorRecorder keeps what the selector asked of the kernel.
type floorRecorder map[string]time.Duration

func (f floorRecorder) set(device string, excess time.Duration) { f[device] = excess }

func wrIDs(completions []verbs.Completion) []uint64 {
	ids := []uint64{}
	for _, c := range completions {
		ids = append(ids, c.WRID)
	}
	return ids
}

func TestSelectorExportsTheSlowestOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSelector(5, floorRecorder{}.set, now)
	s.tokens = 3
	for i := range uint64(10) {
		s.offer(slowCompletion("mlx5_0", i, time.Duration(100+i)*time.Microsecond))
	}
	export, left := s.flush(now)
	assert.Equal(t, []uint64{9, 8, 7}, wrIDs(export))
	assert.Equal(t, 7, left)

	export, left = s.flush(now.Add(time.Second))
	assert.Empty(t, export, "a completion is exported at most once")
	assert.Zero(t, left)
}

func TestSelectorBudget(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSelector(5, floorRecorder{}.set, now)
	exported := 0
	for range 20 {
		for i := range uint64(100) {
			s.offer(slowCompletion("mlx5_0", i, time.Duration(100+i)*time.Microsecond))
		}
		now = now.Add(time.Second)
		export, left := s.flush(now)
		require.Equal(t, 100, len(export)+left, "every completion is exported or counted")
		exported += len(export)
	}
	// A full bucket of 50 does not fill further in the first second.
	assert.Equal(t, 50+19*5, exported)
}

func TestSelectorSharesTheBudgetAmongDevices(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSelector(5, floorRecorder{}.set, now)
	s.tokens = 4
	for i := range uint64(40) {
		s.offer(slowCompletion("noisy", i, time.Duration(1000+i)*time.Microsecond))
	}
	s.offer(slowCompletion("quiet", 100, 60*time.Microsecond))
	export, left := s.flush(now)
	assert.Equal(t, []uint64{39, 100, 38, 37}, wrIDs(export))
	assert.Equal(t, 37, left)
}

func TestSelectorPrefersFailuresToSlowOnesToFlushes(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSelector(5, floorRecorder{}.set, now)
	s.tokens = 2
	for i := range uint64(200) {
		s.offer(failedCompletion("mlx5_0", i, verbs.StatusWRFlushErr))
	}
	s.offer(slowCompletion("mlx5_0", 1000, time.Second))
	s.offer(failedCompletion("mlx5_0", 1001, verbs.Status(12)))
	export, left := s.flush(now)
	assert.Equal(t, []uint64{1001, 1000}, wrIDs(export))
	assert.Equal(t, 200, left)
}

func TestSelectorRaisesAndLowersTheFloor(t *testing.T) {
	now := time.Unix(1000, 0)
	floors := floorRecorder{}
	s := newSelector(5, floors.set, now)
	// 1000 reports in a window: 20 times what may be exported at once.
	for i := range uint64(1000) {
		s.offer(slowCompletion("mlx5_0", i, time.Duration(100+i)*time.Microsecond))
	}
	s.flush(now)
	raised := floors["mlx5_0"]
	// The floor lets through what one burst holds, no less.
	assert.Equal(t, (100+1000-50)*time.Microsecond, raised)
	assert.Equal(t, map[string]time.Duration{"mlx5_0": raised}, s.floors())

	// As many reports as the floor lets through keep it where it is.
	for range 5 {
		for i := range uint64(50) {
			s.offer(slowCompletion("mlx5_0", i, raised+time.Duration(i)))
		}
		now = now.Add(time.Second)
		s.flush(now)
		require.Equal(t, raised, floors["mlx5_0"])
	}

	// Silence lowers it until the kernel reports everything again.
	for range 20 {
		now = now.Add(time.Second)
		s.flush(now)
	}
	assert.Zero(t, floors["mlx5_0"])
	assert.Empty(t, s.floors())
	assert.Empty(t, s.devices, "a device without a floor is forgotten")
}

func TestSelectorDoesNotRaiseTheFloorForFailures(t *testing.T) {
	now := time.Unix(1000, 0)
	floors := floorRecorder{}
	s := newSelector(5, floors.set, now)
	for i := range uint64(5000) {
		s.offer(failedCompletion("mlx5_0", i, verbs.Status(12)))
	}
	s.flush(now)
	assert.Empty(t, floors)
}

func TestSelectorBoundsDevices(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSelector(5, floorRecorder{}.set, now)
	for i := range uint64(10_000) {
		s.offer(slowCompletion("forged"+string(rune('a'+i)), i, time.Millisecond))
	}
	assert.LessOrEqual(t, len(s.devices), maxSelectorDevices+1)
	export, left := s.flush(now)
	assert.Equal(t, 50, len(export))
	assert.Equal(t, 9950, left)
}

func BenchmarkSelectorOffer(b *testing.B) {
	s := newSelector(5, func(string, time.Duration) {}, time.Unix(1000, 0))
	c := slowCompletion("mlx5_0", 0, time.Millisecond)
	for b.Loop() {
		c.Delivered += 7919
		if c.Delivered > 3e9 {
			c.Delivered = c.Posted + 100_000
		}
		s.offer(c)
	}
}
