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
func TestRetiredIndexRests(t *testing.T) {
	r := newDeviceRest(unusedFor, retiredFor)
	names := []string{"a", "b", "c"}
	r.retire(100, names, "a")
	r.retire(130, names, "c")
	r.retire(150, names, "a")
	assert.Empty(t, r.rested(159, nil))
	assert.Equal(t, []uint32{0}, r.rested(160, nil), "retired again, it is not since then")
	assert.Equal(t, []uint32{0, 2}, r.rested(500, nil))
	assert.Equal(t, []uint32{2}, r.rested(500, map[uint32]bool{0: true}))
	assert.False(t, r.hasIndex(names, "a"))
	assert.True(t, r.hasIndex(names, "b"))
	assert.True(t, r.hasIndex(append(names, "a"), "a"), "it came back")
	nobody := func(string) bool { return false }
	r.gone(1000, names, nobody, nil)
	assert.Equal(t, []string{"b"}, r.gone(1300, names, nobody, nil), "those that are retired are not given up again")
}

// A device that came back in sysfs before its index was free keeps that from nobody.
func TestRestIsDue(t *testing.T) {
	names := []string{"", "a", "b"}
	both, one := map[string]bool{"a": true, "b": true}, map[string]bool{"a": true}
	for name, test := range map[string]struct {
		retired map[uint32]uint64
		shown   map[string]bool
		want    bool
	}{
		"all are shown":                      {nil, both, false},
		"one is not":                         {nil, one, true},
		"one is shown again and was retired": {map[uint32]uint64{1: 5}, both, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeviceRest(unusedFor, retiredFor)
			r.retired = test.retired
			assert.Equal(t, test.want, r.isDue(names, test.shown))
		})
	}
}

// A device that was away for a moment and is again much later is unused from then on.
func TestDeviceThatWasShownIsNotIdle(t *testing.T) {
	r := newDeviceRest(unusedFor, retiredFor)
	names := []string{"a"}
	nobody := func(string) bool { return false }
	assert.True(t, r.isDue(names, nil))
	assert.Empty(t, r.gone(100, names, nobody, nil))
	assert.False(t, r.isDue(names, map[string]bool{"a": true}))
	assert.True(t, r.isDue(names, nil))
	assert.Empty(t, r.gone(4000, names, nobody, nil))
	assert.Equal(t, names, r.gone(4300, names, nobody, nil))
}

func TestDevicesThatAreCountedOnStill(t *testing.T) {
	set := func(all ...uint32) map[uint32]bool {
		indexes := map[uint32]bool{}
		for _, i := range all {
			indexes[i] = true
		}
		return indexes
	}
	for name, test := range map[string]struct {
		names         []string
		retired       []uint32
		used, counted map[uint32]bool
		want          []string
	}{
		"one":                                {[]string{"a", "b"}, []uint32{0}, nil, set(0, 1), []string{"a"}},
		"none":                               {[]string{"a", "b"}, []uint32{0}, nil, set(1), nil},
		"once for both indexes":              {[]string{"a", "a"}, []uint32{0, 1}, nil, set(0, 1), []string{"a"}},
		"it came back: its counts are one's": {[]string{"a", "a"}, []uint32{0}, nil, set(0), nil},
		"its other index has a queue":        {[]string{"a", "a"}, []uint32{0, 1}, set(1), set(0), nil},
		"one that was handed out in vain":    {[]string{""}, []uint32{0}, nil, set(0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeviceRest(unusedFor, retiredFor)
			for _, i := range test.retired {
				r.retired[i] = 1
			}
			assert.Equal(t, test.want, r.left(test.names, r.rested(100, test.used), test.used, test.counted))
		})
	}
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
