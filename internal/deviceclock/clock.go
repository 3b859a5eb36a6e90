package deviceclock

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The bounds within which a calibration is proven.
const (
	// window is the time of which one delay, the smallest, has to be small.
	window = 100 * time.Millisecond
	// span is how far back samples count, fewestWindows in how many windows of
	// it there have to be some, and shortest from the first to the last.
	span          = 8 * time.Second
	fewestWindows = 40
	shortest      = 5 * time.Second
	// maxResidual is how far above the line the best sample of a window may be:
	// the uncertainty of what is derived from it.
	maxResidual = 2 * time.Microsecond
	// maxDrift is by how much the rates of the first and second half of the time
	// may differ, as a part of the rate. Oscillators drift by far less within
	// seconds; a clock that is being corrected drifts by more.
	maxDrift = 2e-6
	// The rates of devices, in nanoseconds per tick: 20 MHz to 5 GHz.
	longestTick, shortestTick = 50.0, 0.2
	// mostKept are the samples of a window that are kept.
	mostKept = 64
	// mostInWindow are those that are taken.
	mostInWindow = 1024
)

// Reasons for which there is no calibration.
var (
	// ErrNoStamps says that the device writes none, or none that are understood.
	ErrNoStamps = errors.New("the device gives no time stamps")
	// ErrTooFew says that there are not enough samples yet.
	ErrTooFew = errors.New("too few time stamps")
	// ErrUnsteady says that the samples are not those of a steady clock seen
	// with small delays.
	ErrUnsteady = errors.New("the clock is not steady, or stamps are found late")
	// ErrUnconfirmed says that no sample after the moment in question shows that
	// the clock still ran as before.
	ErrUnconfirmed = errors.New("no later time stamp confirms the clock")
)

// Clock calibrates the clock of one device. Where the clock jumps or wraps around,
// there is no line below all samples that comes close to them until those from
// before are forgotten. The zero value is ready. It is not safe for concurrent
// use.
type Clock struct {
	format Format
	// ticks0 and seen0 are the origin of points.
	ticks0, seen0 int64
	windows       []sampled
	// silent counts samples without a stamp since the last one with one.
	silent int
}

// sampled is one window: its number, and of its samples the lower hull.
type sampled struct {
	number int64
	points []point
}

// Add takes a sample: the stamp, and when the completion was seen, in nanoseconds
// of CLOCK_MONOTONIC.
func (c *Clock) Add(stamp uint64, seen int64) {
	format := FormatOf(stamp)
	if format == Unknown {
		c.silent++
		return
	}
	c.silent = 0
	if format != c.format || len(c.windows) == 0 {
		c.begin(format, stamp, seen)
	}
	p := point{float64(c.format.ticks(stamp) - c.ticks0), float64(seen - c.seen0)}
	c.keep(p, seen)
}

func (c *Clock) begin(format Format, stamp uint64, seen int64) {
	c.format, c.ticks0, c.seen0, c.windows = format, format.ticks(stamp), seen, nil
}

// keep adds a point to its window.
func (c *Clock) keep(p point, seen int64) {
	number := seen / int64(window)
	n := len(c.windows)
	if n == 0 || c.windows[n-1].number < number {
		if n > 0 {
			c.windows[n-1].reduce()
		}
		c.windows = append(c.windows, sampled{number: number})
		n++
	}
	w := &c.windows[n-1]
	if len(w.points) < mostInWindow {
		w.points = append(w.points, p)
	}
	first := slices.IndexFunc(c.windows, func(w sampled) bool { return w.number > number-int64(span/window) })
	c.windows = c.windows[max(first, 0):]
}

// reduce keeps what may lie on a line below all points. That is a handful of
// those of a real clock; of a longer hull every so many do.
func (w *sampled) reduce() {
	hull := lowerHull(w.points)
	each := (len(hull) + mostKept - 1) / mostKept
	w.points = w.points[:0]
	for i := 0; i < len(hull); i += each {
		w.points = append(w.points, hull[i])
	}
}

// Calibration is a proven relation of a device's clock to CLOCK_MONOTONIC.
type Calibration struct {
	Format Format
	// Rate is nanoseconds per tick.
	Rate float64
	// Uncertainty is how far off a moment may be: the largest of the smallest
	// delays of the windows. The smallest delay of all, from the write of the
	// device to the CPU's look, is not known and makes every moment seem late by
	// it; on an idle bus that is well below a microsecond.
	Uncertainty time.Duration

	ticks0, seen0 int64
	line          line
	// from and to are the stamps of the proof, last is the number of its last
	// window.
	from, to float64
	last     int64
}

// Calibrate proves a calibration from the samples so far, or says why there is
// none: an error that wraps ErrNoStamps, ErrTooFew or ErrUnsteady.
func (c *Clock) Calibrate() (Calibration, error) {
	if len(c.windows) == 0 || c.silent > mostInWindow {
		return Calibration{}, fmt.Errorf("%w: %d completions without one", ErrNoStamps, c.silent)
	}
	// The last window may have its best sample before it.
	windows := c.windows[:len(c.windows)-1]
	if len(windows) < fewestWindows {
		return Calibration{}, fmt.Errorf("%w: in %d windows of %v", ErrTooFew, len(windows), window)
	}
	if covered := time.Duration(windows[len(windows)-1].number-windows[0].number) * window; covered < shortest {
		return Calibration{}, fmt.Errorf("%w: within %v", ErrTooFew, covered)
	}
	half := len(windows) / 2
	whole, ok := envelope(pointsOf(windows))
	first, okFirst := envelope(pointsOf(windows[:half]))
	second, okSecond := envelope(pointsOf(windows[half:]))
	if !ok || !okFirst || !okSecond || whole.b > longestTick || whole.b < shortestTick {
		return Calibration{}, fmt.Errorf("%w: a tick of %g ns", ErrUnsteady, whole.b)
	}
	if drift := math.Abs(second.b-first.b) / whole.b; drift > maxDrift {
		return Calibration{}, fmt.Errorf("%w: its rate changed by %.2g", ErrUnsteady, drift)
	}
	residual := 0.0
	for i := range windows {
		residual = math.Max(residual, windows[i].residual(whole))
	}
	if residual > float64(maxResidual) {
		return Calibration{}, fmt.Errorf("%w: in one of the windows of %v every stamp is more than %v late", ErrUnsteady, window, time.Duration(residual))
	}
	last := windows[len(windows)-1]
	return Calibration{
		Format: c.format, Rate: whole.b, Uncertainty: time.Duration(math.Ceil(residual)),
		ticks0: c.ticks0, seen0: c.seen0, line: whole,
		from: windows[0].points[0].x, to: last.points[len(last.points)-1].x,
		last: last.number,
	}, nil
}

// residual is how far above a line the nearest point is.
func (w *sampled) residual(l line) float64 {
	least := math.Inf(1)
	for _, p := range w.points {
		least = math.Min(least, p.y-l.at(p.x))
	}
	return least
}

func pointsOf(windows []sampled) []point {
	var all []point
	for i := range windows {
		all = append(all, windows[i].points...)
	}
	return all
}

// When returns the moment of a stamp, in nanoseconds of CLOCK_MONOTONIC, of a
// completion that was seen at a moment of the same clock. An error that wraps
// ErrUnconfirmed says that the stamp is not among those that the calibration was
// proven with, or that no window since shows that the clock had not been set
// just before.
func (c *Calibration) When(stamp uint64, seen int64) (int64, error) {
	if FormatOf(stamp) != c.Format {
		return 0, fmt.Errorf("%w: a stamp of format %s", ErrUnconfirmed, FormatOf(stamp))
	}
	x := float64(c.Format.ticks(stamp) - c.ticks0)
	when := c.seen0 + int64(math.Round(c.line.at(x)))
	if x < c.from || x > c.to || seen/int64(window) >= c.last || when > seen+int64(c.Uncertainty) {
		return 0, ErrUnconfirmed
	}
	return min(when, seen), nil
}
