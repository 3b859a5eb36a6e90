package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTableRow(t *testing.T) {
	var out bytes.Buffer
	table := table{out: &out}
	start := time.Date(2026, 3, 1, 12, 30, 1, 123456000, time.Local)
	table.add(slowRequest{
		Start: start, End: start.Add(452 * time.Microsecond),
		Process: "trainer-process", PID: 4711, Device: "mlx5_0", QP: 0x111, Operation: "rdma_write_with_imm", Bytes: 65536,
		Stages: map[string]time.Duration{"poll": time.Microsecond, "device": 451 * time.Microsecond},
	})
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, []string{"TIME", "PROCESS", "DEVICE", "QP", "OPERATION", "SIZE", "DURATION", "STAGES", "(µs)"}, strings.Fields(lines[0]))
	assert.Equal(t, "12:30:01.123456 trainer-pr (4711)  mlx5_0    0x111    rdma_write_with_imm   64.0 KiB   452.0 µs  device 451.0  poll 1.0", lines[1])
	assert.NotContains(t, out.String(), "\x1b", "no control sequences where there is no terminal")
}

func TestTableRepeatsItsHeading(t *testing.T) {
	var out bytes.Buffer
	table := table{out: &out, terminal: true}
	for range headerEvery + 1 {
		table.add(slowRequest{})
	}
	assert.Equal(t, 2, strings.Count(out.String(), "DURATION"))
	assert.Equal(t, 2, strings.Count(out.String(), bold))
	assert.Equal(t, 2, strings.Count(out.String(), plain))
}

func TestFormat(t *testing.T) {
	assert.Equal(t, "0 B", formatBytes(0))
	assert.Equal(t, "1023 B", formatBytes(1023))
	assert.Equal(t, "1.5 KiB", formatBytes(1536))
	assert.Equal(t, "8.0 MiB", formatBytes(8<<20))
	assert.Equal(t, "450.5 µs", formatDuration(450500*time.Nanosecond))
	assert.Equal(t, "1.25s", formatDuration(1250*time.Millisecond))
}
