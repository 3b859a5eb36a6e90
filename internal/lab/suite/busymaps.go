package suite

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/cilium/ebpf"
)

// preemptFile shows the preemption models of the kernel, with that in use in
// parentheses.
const preemptFile = "/sys/kernel/debug/sched/preempt"

var preemptNow = regexp.MustCompile(`\((\w+)\)`)

// busyMaps is a thread that does nothing but look through an empty BPF map, as fast
// as it can. While it does, bpf_prog_active of its CPU is raised, and the kernel skips
// every program of a kprobe that something else reaches there: with full preemption
// whatever preempts the thread.
type busyMaps struct {
	model string
	stop  chan struct{}
	done  chan error
}

// emptyBuckets is so many that a look through them takes some milliseconds of an
// emulated CPU.
const emptyBuckets = 1 << 16

func keepMapsBusy() (*busyMaps, error) {
	models, err := os.ReadFile(preemptFile)
	if err != nil {
		return nil, err
	}
	m := preemptNow.FindSubmatch(models)
	if m == nil {
		return nil, fmt.Errorf("%s does not say which model is in use: %q", preemptFile, models)
	}
	empty, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "busy", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: emptyBuckets, Flags: mapWithoutElements,
	})
	if err != nil {
		return nil, fmt.Errorf("make a map: %w", err)
	}
	if err := os.WriteFile(preemptFile, []byte("full"), 0o644); err != nil {
		return nil, errors.Join(err, empty.Close())
	}
	b := &busyMaps{model: string(m[1]), stop: make(chan struct{}), done: make(chan error, 1)}
	go b.run(empty)
	return b, nil
}

// mapWithoutElements is BPF_F_NO_PREALLOC.
const mapWithoutElements = 1

func (b *busyMaps) run(empty *ebpf.Map) {
	keys, values := make([]uint32, 1), make([]uint32, 1)
	for {
		select {
		case <-b.stop:
			b.done <- empty.Close()
			return
		default:
		}
		var cursor ebpf.MapBatchCursor
		if _, err := empty.BatchLookup(&cursor, keys, values, nil); !errors.Is(err, ebpf.ErrKeyNotExist) {
			b.done <- errors.Join(fmt.Errorf("a look through an empty map: %w", err), empty.Close())
			return
		}
	}
}

// end ends the thread and restores the preemption model.
func (b *busyMaps) end() error {
	close(b.stop)
	return errors.Join(<-b.done, os.WriteFile(preemptFile, []byte(b.model), 0o644))
}
