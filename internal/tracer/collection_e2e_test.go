//go:build e2e

package tracer

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// Of programs of which the kernel refuses one, none is kept, and the error names it.
func TestRefusedProgramKeepsNone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: BPF programs cannot be loaded without it")
	}
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{}}
	for n := range 6 {
		spec.Programs["good_"+strconv.Itoa(n)] = programOf(2)
	}
	collection, err := newCollection(t.Context(), spec, nil, nil, &cpuMeter{})
	if err != nil || len(collection.Programs) != len(spec.Programs) {
		t.Fatalf("%d programs, %v", len(collection.Programs), err)
	}
	collection.Close()

	before := openFiles(t)
	spec.Programs["bad"] = programOf(1) // It returns what it has not set.
	_, err = newCollection(t.Context(), spec, nil, nil, &cpuMeter{})
	if verifier := new(ebpf.VerifierError); !errors.As(err, &verifier) || !strings.Contains(err.Error(), "program bad") {
		t.Errorf("the error is %v", err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d before", after, before)
	}

	// What is wrong with several is told of one: the error goes into one line.
	for n := range 6 {
		spec.Programs["bad_"+strconv.Itoa(n)] = programOf(1)
	}
	if _, err = newCollection(t.Context(), spec, nil, nil, &cpuMeter{}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("of several programs that are refused: %v", err)
	}
}

// Whoever ends a start that has only begun does not wait for the verifier.
func TestEndedContextLoadsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"one": programOf(2)}}
	if _, err := newCollection(ctx, spec, nil, nil, &cpuMeter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// The time that the kernel takes to verify programs is accounted for, whoever waits.
func TestLoadingIsAccountedFor(t *testing.T) {
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{}}
	for n := range 6 {
		spec.Programs["long_"+strconv.Itoa(n)] = programOf(4000)
	}
	loading := &cpuMeter{}
	collection, err := newCollection(t.Context(), spec, nil, nil, loading)
	if err != nil {
		t.Fatal(err)
	}
	collection.Close()
	if loading.total() <= 0 {
		t.Error("verifying took no time")
	}
}
