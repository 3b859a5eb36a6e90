package tracer

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	unusedFor  = 300
	retiredFor = 60
)

// at is what is known of the devices at a moment.
type at struct {
	now     uint64
	used    []string
	counted uint64 // on the device a
	want    []string
}

func TestDeviceIsGone(t *testing.T) {
	a, both := []string{"a"}, []string{"", "a", "b", "a"}
	for name, test := range map[string]struct {
		names   []string
		moments []at
	}{
		"after it was unused for long":      {a, []at{{100, nil, 0, nil}, {399, nil, 0, nil}, {400, nil, 0, a}}},
		"not while it has a queue":          {a, []at{{100, a, 0, nil}, {500, a, 0, nil}, {900, a, 0, nil}}},
		"not while it was used in between":  {a, []at{{100, nil, 0, nil}, {300, a, 0, nil}, {500, nil, 0, nil}, {799, nil, 0, nil}, {800, nil, 0, a}}},
		"not while something is counted":    {a, []at{{100, nil, 0, nil}, {400, nil, 5, nil}, {699, nil, 5, nil}, {700, nil, 5, a}}},
		"one of two":                        {both, []at{{100, []string{"b"}, 0, nil}, {400, []string{"b"}, 0, a}}},
		"once, whatever indexes it has":     {both, []at{{100, nil, 0, nil}, {400, nil, 0, []string{"a", "b"}}}},
		"an index without a name is no one": {[]string{"", ""}, []at{{100, nil, 0, nil}, {900, nil, 0, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeviceRest(unusedFor, retiredFor)
			for _, m := range test.moments {
				got := r.gone(m.now, test.names, func(name string) bool { return slices.Contains(m.used, name) }, map[string]uint64{"a": m.counted})
				assert.Equal(t, m.want, got, "at %d", m.now)
			}
		})
	}
}

// An index that no name leads to any more is free after a rest, unless something
// still refers to it, and until then its device counts as one that has none.
func TestRetiredIndexIsFree(t *testing.T) {
	r := newDeviceRest(unusedFor, retiredFor)
	names := []string{"a", "b", "c"}
	r.retired = map[uint32]uint64{0: 100, 2: 130}
	assert.Empty(t, r.free(159, func(uint32) bool { return false }))
	assert.Equal(t, []uint32{0}, r.free(160, func(uint32) bool { return false }))
	assert.Equal(t, []uint32{2}, r.free(500, func(i uint32) bool { return i == 0 }))
	assert.False(t, r.hasIndex(names, "a"))
	assert.True(t, r.hasIndex(names, "b"))
	assert.True(t, r.hasIndex(append(names, "a"), "a"), "it came back")
	nobody := func(string) bool { return false }
	r.gone(1000, names, nobody, nil)
	assert.Equal(t, []string{"b"}, r.gone(1300, names, nobody, nil), "those that are retired are not given up again")
}

func TestDeviceOfKind(t *testing.T) {
	for _, device := range []uint64{0, 5, 127} {
		kind := uint64(7)<<32 | 1<<31 | device<<16 | 3<<8 | 9
		assert.EqualValues(t, device, deviceOfKind(kind))
	}
}

func TestRatesForget(t *testing.T) {
	asked := make(chan string, 2)
	r := newRates(func(device string) (float64, bool) { asked <- device; return 1e9, true }, func() {})
	r.of("a")
	<-asked
	assert.Eventually(t, func() bool { _, ok := r.of("a"); return ok }, time.Second, time.Millisecond)
	r.forget("a")
	_, ok := r.of("a")
	assert.False(t, ok, "the rate of a device that is gone is another one's")
	<-asked
}
