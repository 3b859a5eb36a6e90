package deviceclock

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// device is a clock made up for a test: when the host's reads t nanoseconds, it
// writes the stamp of that moment.
type device func(t int64) uint64

// steady counts cycles, the first at the moment 0 from somewhere on.
func steady(hertz float64, from uint64) device {
	return func(t int64) uint64 { return from + uint64(float64(t)*hertz/1e9) }
}

// realTime shows the time of day, which was so many seconds at the moment 0 and
// runs too fast by a part of it.
func realTime(seconds uint64, fast float64) device {
	return func(t int64) uint64 {
		ns := t + int64(float64(t)*fast)
		return (seconds+uint64(ns/1e9))<<32 | uint64(ns%1e9)
	}
}

// begun is the host's clock when a test begins: it has been up for some days.
const begun = int64(400_000 * time.Second)

// feed adds samples of so much time, one a millisecond: the device writes, and a
// CPU looks after the delay.
func feed(c *Clock, d device, from, length time.Duration, delay func() time.Duration) {
	for t := from; t < from+length; t += time.Millisecond {
		at := int64(t)
		c.Add(d(at), begun+at+int64(delay()))
	}
}

// busy is the delay of a thread that polls all the time and is preempted now and
// then.
func busy(r *rand.Rand) func() time.Duration {
	return func() time.Duration {
		if r.IntN(50) == 0 {
			return time.Duration(r.IntN(5_000_000))
		}
		return time.Duration(100 + r.ExpFloat64()*400)
	}
}

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// assertRight checks that every stamp of a time has its moment, or none.
func assertRight(t *testing.T, c *Clock, d device, from, length time.Duration) (told int) {
	t.Helper()
	calibration, err := c.Calibrate()
	if err != nil {
		return 0
	}
	for at := int64(from); at < int64(from+length); at += int64(7770 * time.Microsecond) {
		when, err := calibration.When(d(at), begun+at+2000)
		if err != nil {
			require.ErrorIs(t, err, ErrUnconfirmed)
			continue
		}
		told++
		// The smallest delay there is is part of what is told.
		require.InDelta(t, begun+at, when, float64(calibration.Uncertainty+time.Microsecond), "at %v", time.Duration(at))
	}
	return told
}

func TestSteadyClocksAreProven(t *testing.T) {
	tests := map[string]struct {
		device device
		format Format
		rate   float64
	}{
		"156.25 MHz":            {steady(156.25e6, 1<<40), FreeRunning, 6.4},
		"1 GHz, 30 ppm fast":    {steady(1e9*(1+30e-6), 12345), FreeRunning, 1 / (1 + 30e-6)},
		"a real-time clock":     {realTime(1_790_000_000, 0), RealTime, 1},
		"a slewed one, 100 ppm": {realTime(1_790_000_000, 100e-6), RealTime, 1 / (1 + 100e-6)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c Clock
			feed(&c, test.device, time.Second, 20*time.Second, busy(random()))
			calibration, err := c.Calibrate()
			require.NoError(t, err)
			assert.Equal(t, test.format, calibration.Format)
			assert.InEpsilon(t, test.rate, calibration.Rate, 1e-6)
			assert.Less(t, calibration.Uncertainty, time.Microsecond)
			assert.Greater(t, assertRight(t, &c, test.device, 14*time.Second, 6*time.Second), 700)
		})
	}
}

// Nothing is said of moments that no later stamp confirms.
func TestMomentsHaveToBeConfirmed(t *testing.T) {
	var c Clock
	d := steady(1e9, 0)
	feed(&c, d, time.Second, 20*time.Second, busy(random()))
	calibration, err := c.Calibrate()
	require.NoError(t, err)
	_, err = calibration.When(d(int64(21*time.Second)), begun+int64(21*time.Second))
	require.ErrorIs(t, err, ErrUnconfirmed)
	_, err = calibration.When(0, begun+int64(15*time.Second))
	require.ErrorIs(t, err, ErrUnconfirmed)
	_, err = calibration.When(realTime(1_790_000_000, 0)(int64(15*time.Second)), begun+int64(15*time.Second))
	require.ErrorIs(t, err, ErrUnconfirmed)
}

func TestWhatIsNotProven(t *testing.T) {
	r := random()
	tests := map[string]struct {
		device device
		delay  func() time.Duration
		length time.Duration
		want   error
	}{
		"no stamps":        {func(int64) uint64 { return 0 }, busy(r), 20 * time.Second, ErrNoStamps},
		"always the same":  {func(int64) uint64 { return 4711 }, busy(r), 20 * time.Second, ErrUnsteady},
		"noise":            {func(int64) uint64 { return r.Uint64() >> 8 }, busy(r), 20 * time.Second, ErrUnsteady},
		"no such format":   {func(t int64) uint64 { return math.MaxUint64 - uint64(t)%1000 }, busy(r), 20 * time.Second, ErrNoStamps},
		"too short a time": {steady(1e9, 0), busy(r), 3 * time.Second, ErrTooFew},
		"too slow":         {steady(1e6, 0), busy(r), 20 * time.Second, ErrUnsteady},
		"a poller that sleeps": {
			steady(1e9, 0), func() time.Duration { return time.Duration(r.IntN(2_000_000)) + time.Duration(r.IntN(2_000_000)) }, 20 * time.Second, ErrUnsteady,
		},
		"a rate that changes": {
			func(t int64) uint64 { s := float64(t) / 1e9; return uint64(1e9 * (s + 2e-6*s*s)) }, busy(r), 20 * time.Second, ErrUnsteady,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c Clock
			feed(&c, test.device, time.Second, test.length, test.delay)
			_, err := c.Calibrate()
			assert.ErrorIs(t, err, test.want)
		})
	}
}

// Where a clock jumps, nothing wrong is told, not even of the time before, and it
// is proven anew some seconds later.
func TestClocksThatJump(t *testing.T) {
	const jump = 20 * time.Second
	jumps := map[string]device{
		"set back by 300 us": stepped(realTime(1_790_000_000, 0), jump, -300*time.Microsecond),
		"set on by 300 us":   stepped(realTime(1_790_000_000, 0), jump, 300*time.Microsecond),
		"set back by 2 h":    stepped(realTime(1_790_000_000, 0), jump, -2*time.Hour),
		"set on by 37 s":     stepped(realTime(1_790_000_000, 0), jump, 37*time.Second),
		"41 bits are used up": func(t int64) uint64 {
			return (1<<41 - uint64(jump) + uint64(t)) & (1<<41 - 1)
		},
		"another format": func(t int64) uint64 {
			if t < int64(jump) {
				return steady(1e9, 99)(t)
			}
			return realTime(1_790_000_000, 0)(t)
		},
	}
	for name, d := range jumps {
		t.Run(name, func(t *testing.T) {
			var c Clock
			delay := busy(random())
			feed(&c, d, time.Second, jump-time.Second, delay)
			_, err := c.Calibrate()
			require.NoError(t, err)
			told := 0
			for at := jump; at < 2*jump; at += 50 * time.Millisecond {
				feed(&c, d, at, 50*time.Millisecond, delay)
				told += assertRight(t, &c, d, max(at-8*time.Second, jump), 8*time.Second)
			}
			assert.Greater(t, told, 1000, "moments told after the jump")
			_, err = c.Calibrate()
			require.NoError(t, err)
		})
	}
}

// stepped is a clock that is set by somebody at a moment.
func stepped(d device, at, by time.Duration) device {
	return func(t int64) uint64 {
		if t < int64(at) {
			return d(t)
		}
		stamp := d(1)
		ns := int64(stamp>>32)*1e9 + t + int64(by)
		return uint64(ns/1e9)<<32 | uint64(ns%1e9)
	}
}

// A poller that is kept off its CPU for a time finds one stamp late: its moment is
// told all the same.
func TestLatePollIsTold(t *testing.T) {
	var c Clock
	d := steady(1e9, 0)
	delay := busy(random())
	feed(&c, d, time.Second, 14*time.Second, delay)
	const written, found = 15 * time.Second, 15*time.Second + 300*time.Millisecond
	c.Add(d(int64(written)), begun+int64(found))
	feed(&c, d, found, time.Second, delay)
	calibration, err := c.Calibrate()
	require.NoError(t, err)
	when, err := calibration.When(d(int64(written)), begun+int64(found))
	require.NoError(t, err)
	assert.InDelta(t, begun+int64(written), when, 1000)
}

// The work and memory for samples is bounded, whatever they are.
func FuzzClock(f *testing.F) {
	f.Add(uint64(1), uint64(1e9), int64(1000))
	f.Add(uint64(1<<62), uint64(1<<63), int64(-5))
	f.Fuzz(func(t *testing.T, stamp, step uint64, seen int64) {
		var c Clock
		for i := range int64(500) {
			c.Add(stamp+uint64(i)*step, seen+i*int64(13*time.Millisecond))
		}
		require.LessOrEqual(t, len(c.windows), 500)
		if calibration, err := c.Calibrate(); err == nil {
			_, _ = calibration.When(stamp, seen)
			assert.LessOrEqual(t, calibration.Uncertainty, maxResidual)
		}
	})
}
