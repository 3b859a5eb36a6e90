package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (b *bench) machine() machine {
	var name unix.Utsname
	kernel := "unknown"
	if unix.Uname(&name) == nil {
		kernel = unix.ByteSliceToString(name.Release[:])
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		info = nil
	}
	model, virtual := processorOf(string(info))
	return machine{
		Kernel:      kernel,
		Processor:   model,
		CPUs:        runtime.NumCPU(),
		Virtual:     virtual,
		LoadAtStart: load(),
	}
}

// processorOf reads the first processor of /proc/cpuinfo: its name, and whether
// a hypervisor shows itself, as it does on x86.
func processorOf(cpuinfo string) (model string, virtual bool) {
	model = runtime.GOARCH
	for line := range strings.Lines(cpuinfo) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			break // The end of the first one.
		}
		switch strings.TrimSpace(key) {
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			virtual = slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return model, virtual
}

// load is the load average of the last minute, 0 when it cannot be read.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return value
}

// divideProcessors gives the last processor to the observed programs and keeps
// this program, the agent and bpftrace, which inherit it, on the others.
func divideProcessors() (observed int, others []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, nil, fmt.Errorf("asking for the processors of this program: %w", err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			others = append(others, cpu)
		}
	}
	if len(others) < 2 {
		return 0, nil, fmt.Errorf("the benchmark needs two processors, one for the observed program: this one may use %d", len(others))
	}
	observed, others = others[len(others)-1], others[:len(others)-1]
	return observed, others, pin(0, others...)
}

// pin keeps a thread, 0 for the calling one, on some processors. Threads and
// processes that it starts later stay there, too.
func pin(thread int, cpus ...int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(thread, &set); err != nil {
		return fmt.Errorf("keeping thread %d on processors %v: %w", thread, cpus, err)
	}
	return nil
}
