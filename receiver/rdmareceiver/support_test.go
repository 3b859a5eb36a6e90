package rdmareceiver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// handEngine is an engine that the test drives by hand.
type handEngine struct {
	completions chan verbs.Completion
	stuck       chan verbs.Stuck
	async       chan verbs.AsyncEvent

	mu       sync.Mutex
	snapshot verbs.Snapshot
	glance   verbs.Snapshot
	// glances counts them, each of which takes this long.
	glances     int
	glanceTakes time.Duration
	err         error
	impaired    error
	floors      map[string]time.Duration
	closed      int
}

var _ engine = (*handEngine)(nil)

func newHandEngine() *handEngine {
	return &handEngine{
		completions: make(chan verbs.Completion), stuck: make(chan verbs.Stuck),
		async:  make(chan verbs.AsyncEvent),
		floors: map[string]time.Duration{},
	}
}

func (e *handEngine) Completions() <-chan verbs.Completion { return e.completions }
func (e *handEngine) Stuck() <-chan verbs.Stuck            { return e.stuck }

func (e *handEngine) Async() <-chan verbs.AsyncEvent { return e.async }

func (e *handEngine) Snapshot() (verbs.Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.snapshot, e.err
}

func (e *handEngine) Glance(bool) (verbs.Snapshot, error) {
	time.Sleep(e.glanceTakes)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.glances++
	return e.glance, e.err
}

func (e *handEngine) look(at verbs.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.glance = at
}

// ConsumerName names the one consumer in the kernel.
func (e *handEngine) ConsumerName(id verbs.ProcessID) string {
	if id.InKernel() {
		return "nvme_rdma"
	}
	return ""
}

func (e *handEngine) Impaired() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.impaired
}

// Scheduling knows of no thread.
func (e *handEngine) Scheduling(uint32, uint64) (verbs.Scheduling, bool) {
	return verbs.Scheduling{}, false
}

func (e *handEngine) SetFloor(device string, excess time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.floors[device] = excess
}

func (e *handEngine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed++
	if e.closed == 1 {
		close(e.completions)
		close(e.stuck)
		close(e.async)
	}
	return nil
}

func (e *handEngine) set(snapshot verbs.Snapshot, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshot, e.err = snapshot, err
}

func (e *handEngine) timesClosed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// listedProcesses knows the facts in the map and no others.
type listedProcesses map[verbs.ProcessID]process.Facts

func (p listedProcesses) Capture(verbs.ProcessID, string) {}

func (p listedProcesses) Facts(id verbs.ProcessID) (process.Facts, error) {
	if facts, ok := p[id]; ok {
		return facts, nil
	}
	return process.Facts{}, process.ErrGone
}

// listedNodes knows the NUMA nodes in its maps and no others.
type listedNodes struct {
	devices map[string]int
	cpus    map[int]int
	// gpus has the addresses of GPUs, all of which are behind the same switch as
	// every device.
	gpus map[string]string
}

func (n listedNodes) DeviceNode(device string) (int, bool) {
	node, ok := n.devices[device]
	return node, ok
}

func (n listedNodes) CPUNode(cpu int) (int, bool) {
	node, ok := n.cpus[cpu]
	return node, ok
}

func (n listedNodes) GPU(uuid, _ string) (string, fabric.Relation) {
	address, ok := n.gpus[uuid]
	if !ok {
		return "", ""
	}
	return address, fabric.RelationPIX
}

// countedIDs makes ids that a golden file can hold.
type countedIDs struct{ last uint64 }

func (c *countedIDs) Uint64() uint64 {
	c.last++
	return c.last
}

func pointer(n int) *int { return &n }

var (
	trainer = verbs.ProcessID{TGID: 4242, Incarnation: 70_000_000_007}
	peer    = verbs.ProcessID{TGID: 4343, Incarnation: 8}
	nobody  = verbs.ProcessID{TGID: 9999, Incarnation: 9}
)

const aContainer = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// theHost is the machine of the golden files: two ranks of one job, the second
// of which knows little of itself.
func theHost() host {
	return host{
		facts: hostFacts{Name: "node-1", ID: "0123456789abcdef0123456789abcdef"},
		processes: listedProcesses{
			trainer: {
				PID: 4242, StartTicks: 1, StartTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Executable: "python3", Name: "python3", ServiceName: "llm-training",
				ContainerID: aContainer,
				SlurmJobID:  "815", SlurmStepID: "0",
				Placement: process.Placement{Rank: pointer(9), LocalRank: pointer(1), WorldSize: pointer(16)},
				Trace: process.TraceContext{
					TraceID: [16]byte{0x4b, 0xf9, 0x2f, 0x35, 15: 0x36}, SpanID: [8]byte{0x00, 0xf0, 7: 0xb7}, Flags: 1,
				},
			},
			peer: {
				PID: 4343, Executable: "python3", Name: "python3", ServiceName: "llm-training",
				ContainerID: aContainer, SlurmJobID: "815", SlurmStepID: "0",
			},
		},
		topology: listedNodes{
			devices: map[string]int{"mlx5_0": 0, "mlx5_1": 1},
			cpus:    map[int]int{3: 0, 40: 1},
			gpus:    map[string]string{"GPU-1": "0000:1b:00.0"},
		},
		executable: func(int) string { return "python3" },
		rate:       func(string) (float64, bool) { return 50e9, true },
	}
}

func theSurroundings() surroundings {
	h := theHost()
	return surroundings{host: h.facts, topology: h.topology, peerAddresses: true, version: "v0.0.0-test"}
}

func theClock() *wallClock {
	clock := &wallClock{}
	clock.add(clockReading{real: 1_767_323_045_000_000_000, monotonic: 5_000_000_000})
	return clock
}

// goldenPath is where a golden file lies. With UPDATE_GOLDEN set, the helpers
// below write it, and fail the test so that this cannot go unnoticed.
func goldenPath(name string) string {
	return filepath.Join("testdata", "golden", name+".yaml")
}

func updating() bool { return os.Getenv("UPDATE_GOLDEN") != "" }

func requireGoldenTraces(t *testing.T, name string, got ptrace.Traces) {
	t.Helper()
	if updating() {
		require.NoError(t, golden.WriteTraces(t, goldenPath(name), got))
	}
	want, err := golden.ReadTraces(goldenPath(name))
	require.NoError(t, err)
	require.NoError(t, ptracetest.CompareTraces(want, got))
}

func requireGoldenLogs(t *testing.T, name string, got plog.Logs) {
	t.Helper()
	if updating() {
		require.NoError(t, golden.WriteLogs(t, goldenPath(name), got))
	}
	want, err := golden.ReadLogs(goldenPath(name))
	require.NoError(t, err)
	require.NoError(t, plogtest.CompareLogs(want, got))
}

func requireGoldenMetrics(t *testing.T, name string, got pmetric.Metrics, options ...pmetrictest.CompareMetricsOption) {
	t.Helper()
	if updating() {
		require.NoError(t, golden.WriteMetrics(t, goldenPath(name), got, golden.SkipMetricTimestampNormalization()))
	}
	want, err := golden.ReadMetrics(goldenPath(name))
	require.NoError(t, err)
	require.NoError(t, pmetrictest.CompareMetrics(want, got, options...))
}

var (
	errRefused = errors.New("the pipeline is full")
	errNoBPF   = errors.New("loading BPF programs needs CAP_BPF")
)

// steadyClocks moves both clocks on together.
func steadyClocks() func() (clockReading, error) {
	began := time.Now()
	return func() (clockReading, error) {
		passed := int64(time.Since(began))
		return clockReading{real: 1_767_323_045_000_000_000 + passed, monotonic: 5_000_000_000 + passed}, nil
	}
}

// handPlatform is a platform whose engine the test drives.
func handPlatform(e engine) platform {
	return platform{
		startEngine: func(context.Context, engineConfig) (engine, error) { return e, nil },
		readClocks:  steadyClocks(),
		errnoName:   func(uint32) string { return "ENOMEM" },
		openHost:    func(string, *slog.Logger) (host, error) { return theHost(), nil },
	}
}

// recordsOf are the records of one event that a pipeline was given.
func recordsOf(sink *consumertest.LogsSink, event string) []plog.LogRecord {
	var found []plog.LogRecord
	for _, logs := range sink.AllLogs() {
		for i := range logs.ResourceLogs().Len() {
			records := logs.ResourceLogs().At(i).ScopeLogs().At(0).LogRecords()
			for j := range records.Len() {
				if records.At(j).EventName() == event {
					found = append(found, records.At(j))
				}
			}
		}
	}
	return found
}

// wallSeconds is a wall time of the golden files.
func wallSeconds(s int64) pcommon.Timestamp {
	return pcommon.Timestamp((1_767_323_045 + s) * 1_000_000_000)
}
