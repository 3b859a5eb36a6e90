package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fieldSteal is the number of "steal" in a line of /proc/stat: the CPU, then user,
// nice, system, idle, iowait, irq, softirq and steal (proc_stat(5)).
const fieldSteal = 8

// Stolen returns for how long a hypervisor has taken each CPU away since boot, by the
// number of the CPU, in steps of 10 ms. CPUs that are offline are missing.
func (r *Reader) Stolen() (map[uint32]time.Duration, error) {
	name := filepath.Join(r.root, "stat")
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read stolen time: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, procStatLimit))
	if err != nil {
		return nil, fmt.Errorf("read stolen time: %w", err)
	}
	stolen, err := parseStolen(text)
	if err != nil {
		return nil, fmt.Errorf("read stolen time in %s: %w", name, err)
	}
	return stolen, nil
}

// parseStolen reads the lines of CPUs, which come first.
func parseStolen(text []byte) (map[uint32]time.Duration, error) {
	stolen := map[uint32]time.Duration{}
	for line := range bytes.Lines(text) {
		number, isCPU := strings.CutPrefix(string(line[:min(len(line), 256)]), "cpu")
		if !isCPU {
			break
		}
		fields := strings.Fields(number)
		if strings.HasPrefix(number, " ") {
			continue // The sum of all.
		}
		if len(fields) <= fieldSteal {
			return nil, errors.New("a CPU has no steal")
		}
		cpu, err := strconv.ParseUint(fields[0], 10, 32)
		ticks, ticksErr := strconv.ParseUint(fields[fieldSteal], 10, 64)
		if err != nil || ticksErr != nil || ticks > maxTicks {
			return nil, errors.New("a line of a CPU is not of numbers")
		}
		stolen[uint32(cpu)] = time.Duration(ticks) * tick
	}
	return stolen, nil
}
