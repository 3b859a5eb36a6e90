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
type witness struct {
	symbols []string
	before  map[string]uint64
}

const (
	witnessPosts       = "rxe_post_send"
	witnessCompletions = "rxe_cq_post"
)

// startWitness puts the probes in place.
func startWitness() (*witness, error) { return startWitnessOf(witnessPosts, witnessCompletions) }

// startWitnessOf counts the calls of functions of the kernel.
func startWitnessOf(symbols ...string) (*witness, error) {
	for _, symbol := range symbols {
		definition := "p:lab/" + symbol + " " + symbol
		if err := appendTo(tracing+"kprobe_events", definition); err != nil {
			return nil, fmt.Errorf("kprobe on %s: %w", symbol, err)
		}
	}
	if err := os.WriteFile(tracing+"events/lab/enable", []byte("1"), 0o644); err != nil {
		return nil, err
	}
	before, err := kprobeHits()
	return &witness{symbols: symbols, before: before}, err
}

// hits returns how often each function was called since the start.
func (w *witness) hits() (map[string]uint64, error) {
	now, err := kprobeHits()
	if err != nil {
		return nil, err
	}
	since := map[string]uint64{}
	for _, symbol := range w.symbols {
		since[symbol] = now[symbol] - w.before[symbol]
	}
	return since, nil
}

// counts returns the posts and completions since the start.
func (w *witness) counts() (posts, completions uint64, err error) {
	hits, err := w.hits()
	return hits[witnessPosts], hits[witnessCompletions], err
}

// stop takes the probes out.
func (w *witness) stop() error {
	err := os.WriteFile(tracing+"events/lab/enable", []byte("0"), 0o644)
	for _, symbol := range w.symbols {
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
