package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// headerEvery repeats the heading, so that it stays in sight.
const headerEvery = 25

const (
	rowFormat = "%-15s %-18s %-9s %-8s %-20s %9s %10s  %s\n"
	bold      = "\x1b[1m"
	plain     = "\x1b[0m"
)

// The stages in the order of time. "submit" and "completion" stand for what
// cannot be told apart.
var stageOrder = []string{"submit", "post", "queue", "device", "completion", "poll"}

// table prints slow work requests, one a row, as they come.
type table struct {
	out      io.Writer
	terminal bool
	rows     int
}

func (t *table) add(r slowRequest) {
	if t.rows%headerEvery == 0 {
		t.header()
	}
	t.rows++
	fmt.Fprintf(t.out, rowFormat,
		r.Start.Local().Format("15:04:05.000000"),
		fmt.Sprintf("%.10s (%d)", r.Process, r.PID),
		r.Device,
		fmt.Sprintf("%#x", r.QP),
		r.Operation,
		formatBytes(r.Bytes),
		formatDuration(r.Duration()),
		formatStages(r.Stages))
}

func (t *table) header() {
	if t.terminal {
		fmt.Fprint(t.out, bold)
		defer fmt.Fprint(t.out, plain)
	}
	fmt.Fprintf(t.out, rowFormat, "TIME", "PROCESS", "DEVICE", "QP", "OPERATION", "SIZE", "DURATION", "STAGES (µs)")
}

func formatStages(stages map[string]time.Duration) string {
	var parts []string
	for _, name := range stageOrder {
		if d, known := stages[name]; known {
			parts = append(parts, fmt.Sprintf("%s %.1f", name, microseconds(d)))
		}
	}
	return strings.Join(parts, "  ")
}

func formatDuration(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f µs", microseconds(d))
	}
	return d.Round(10 * time.Microsecond).String()
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func formatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
