package suite

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// stallWitness notes when the emulated CPU stood still: a process of the highest
// real-time priority wakes up every few milliseconds and writes down the time.
// Nothing the guest schedules can delay it; a busy host can, by not running the
// guest. A request under way then is truly slow, and no fault of the wire. It is
// a shell because Go's scheduler spins, and never yields at that priority.
type stallWitness struct {
	process *process
	path    string
}

const (
	// stallStep is how often the witness wakes up.
	stallStep = 5 * time.Millisecond
	// stallNoted is the least lateness that is taken for a stall: emulation
	// alone makes a shell some milliseconds late.
	stallNoted = 5 * time.Millisecond
)

// stallScript waits at a pipe that nobody writes to. A read that ends otherwise
// than by its time-out ends the script: at this priority it must not spin.
const stallScript = `mkfifo PATH.pipe && exec 3<>PATH.pipe >PATH || exit
while :; do
	read -t 0.005 -u 3
	[ $? -gt 128 ] || exit
	echo $EPOCHREALTIME
done`

func (g *Guest) startStallWitness() (*stallWitness, error) {
	path := g.dir + "/stalls"
	script := strings.ReplaceAll(stallScript, "PATH", path)
	p, err := g.start("stall-witness", "chrt", "--fifo", "99", "bash", "-c", script)
	return &stallWitness{process: p, path: path}, err
}

// gaps returns the stalls so far. A witness that died or wrote nothing is an
// error.
func (w *stallWitness) gaps() ([]gap, error) {
	if exited, status := w.process.exited(); exited {
		return nil, fmt.Errorf("the stall witness ended (%v): %s", status, w.process.outputTail())
	}
	data, err := os.ReadFile(w.path)
	if err != nil {
		return nil, err
	}
	return gapsIn(string(data))
}

// gap is a time in which the CPU stood still.
type gap struct{ from, to time.Time }

// gapsIn reads one time a line, in seconds and microseconds.
func gapsIn(times string) ([]gap, error) {
	var gaps []gap
	var last time.Time
	for line := range strings.Lines(times) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var seconds, micros int64
		if _, err := fmt.Sscanf(line, "%d.%06d\n", &seconds, &micros); err != nil {
			return nil, fmt.Errorf("stall witness: %q: %w", line, err)
		}
		now := time.Unix(seconds, micros*1000)
		if !last.IsZero() && now.Sub(last) > stallStep+stallNoted {
			gaps = append(gaps, gap{last, now})
		}
		last = now
	}
	if last.IsZero() {
		return nil, fmt.Errorf("the stall witness wrote no time")
	}
	return gaps, nil
}

// stalled returns for how long the CPU stood still between two moments.
func stalled(gaps []gap, from, to time.Time) time.Duration {
	total := time.Duration(0)
	for _, g := range gaps {
		begin, end := g.from, g.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		total += max(end.Sub(begin), 0)
	}
	return total
}
