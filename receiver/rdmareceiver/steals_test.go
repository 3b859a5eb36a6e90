package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/process"
)

func TestSteals(t *testing.T) {
	ms := time.Millisecond
	second := uint64(time.Second)
	some := func(d time.Duration) *time.Duration { return &d }
	for name, test := range map[string]struct {
		// readings are of one second each; less than 0 fails.
		readings []time.Duration
		since    uint64
		want     *time.Duration
	}{
		"never":                       {[]time.Duration{0}, second, some(0)},
		"none of late":                {[]time.Duration{10 * ms, 10 * ms}, second, some(0)},
		"some":                        {[]time.Duration{10 * ms, 30 * ms}, second, some(20 * ms)},
		"what was before is left out": {[]time.Duration{10 * ms, 30 * ms, 40 * ms}, 2*second + second/2, some(10 * ms)},
		"nothing is known of before":  {[]time.Duration{10 * ms}, second, nil},
		"it goes back":                {[]time.Duration{20 * ms, 10 * ms}, second, nil},
		"it cannot be read":           {[]time.Duration{10 * ms, -1}, second, nil},
		"it could not be read before": {[]time.Duration{-1, 10 * ms, 20 * ms}, second, some(10 * ms)},
		"nothing was read":            {nil, second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &steals{}
			for i, stolen := range test.readings {
				s.read = func() (map[uint32]time.Duration, error) {
					if stolen < 0 {
						return nil, process.ErrGone
					}
					return map[uint32]time.Duration{3: stolen}, nil
				}
				s.look(uint64(i+1)*second, true)
			}
			assert.Equal(t, test.want, s.took(3, test.since))
			assert.Nil(t, s.took(4, test.since), "there is no such CPU")
		})
	}
}

func TestStealsAreReadWhereThereMayBeSome(t *testing.T) {
	for _, stolen := range []time.Duration{0, time.Second} {
		read := 0
		s := &steals{read: func() (map[uint32]time.Duration, error) {
			read++
			return map[uint32]time.Duration{0: stolen}, nil
		}}
		for i := range uint64(50) {
			s.look(i, i == 30)
		}
		if stolen == 0 {
			assert.Equal(t, 2, read, "at the start, and when something is slow")
		} else {
			assert.Equal(t, 50, read)
		}
		assert.LessOrEqual(t, len(s.stolen.recent), maxTallies)
	}
	(&steals{}).look(1, true)
}
