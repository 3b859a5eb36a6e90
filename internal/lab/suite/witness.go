package suite

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const tracing = "/sys/kernel/tracing/"

// witness counts, with kprobes of its own in the rxe driver, what the clients
// put on the queues: an account of their work that owes nothing to the tracer
// or to the arithmetic of perftest. User space rings rxe's doorbell once for
// each post_send call, and the driver writes one entry per completion.
type witness struct{ before map[string]uint64 }

const (
	witnessPosts       = "rxe_post_send"
	witnessCompletions = "rxe_cq_post"
)

// startWitness puts the probes in place.
func startWitness() (*witness, error) {
	for _, symbol := range []string{witnessPosts, witnessCompletions} {
		definition := "p:lab/" + symbol + " " + symbol
		if err := appendTo(tracing+"kprobe_events", definition); err != nil {
			return nil, fmt.Errorf("kprobe on %s: %w", symbol, err)
		}
	}
	if err := os.WriteFile(tracing+"events/lab/enable", []byte("1"), 0o644); err != nil {
		return nil, err
	}
	before, err := kprobeHits()
	return &witness{before: before}, err
}

// counts returns the posts and completions since the start.
func (w *witness) counts() (posts, completions uint64, err error) {
	now, err := kprobeHits()
	if err != nil {
		return 0, 0, err
	}
	return now[witnessPosts] - w.before[witnessPosts], now[witnessCompletions] - w.before[witnessCompletions], nil
}

// stop takes the probes out.
func (w *witness) stop() error {
	err := os.WriteFile(tracing+"events/lab/enable", []byte("0"), 0o644)
	for _, symbol := range []string{witnessPosts, witnessCompletions} {
		err = errors.Join(err, appendTo(tracing+"kprobe_events", "-:lab/"+symbol))
	}
	return err
}

func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func kprobeHits() (map[string]uint64, error) {
	data, err := os.ReadFile(tracing + "kprobe_profile")
	if err != nil {
		return nil, err
	}
	hits := map[string]uint64{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		missed, errMissed := strconv.ParseUint(f[2], 10, 64)
		if err := errors.Join(err, errMissed); err != nil {
			return nil, fmt.Errorf("kprobe_profile: %q: %w", line, err)
		}
		// A hit inside another probe is only counted as missed.
		hits[f[0]] = n + missed
	}
	return hits, nil
}
