//go:build e2e

package rdmareceiver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// toFiles reports every completion, whatever that costs, and tells the queues of
// each process apart.
const toFiles = `receivers:
  rdma:
    threshold: 1us
    collection_interval: 1s
    max_exported_per_second: 100
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
    metric_attributes: [process.pid, rdma.qp.number]
exporters:
  file/traces: {path: "{dir}/traces.jsonl", flush_interval: 100ms, append: true}
  file/metrics: {path: "{dir}/metrics.jsonl", flush_interval: 100ms, append: true}
service:
  pipelines:
    traces: {receivers: [rdma], exporters: [file/traces]}
    metrics: {receivers: [rdma], exporters: [file/metrics]}
`

// workload is a running verbsim with a truth to come.
type workload struct {
	t       *testing.T
	command *exec.Cmd
	stop    context.CancelFunc
	truth   string
}

// startWorkload starts a scenario and waits until posts are under way.
func startWorkload(t *testing.T, scenario string, flags ...string) *workload {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	w := &workload{t: t, truth: filepath.Join(dir, "truth.json")}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	w.stop = cancel
	t.Cleanup(cancel)
	flags = append([]string{"--midstream", "--ready-file", ready, "--truth", w.truth}, flags...)
	w.command = verbsim.Command(ctx, testbed.Built(t, "verbsim", "verbsim"), scenario, flags...)
	w.command.SysProcAttr = tied(nil)
	require.NoError(t, w.command.Start())
	require.Eventually(t, func() bool {
		_, err := os.Stat(ready)
		return err == nil
	}, testbed.Patience, 10*time.Millisecond, "the workload does not post")
	return w
}

// end stops the workload and returns what it did. Its own checks must hold.
func (w *workload) end() verbsim.Truth {
	w.t.Helper()
	w.stop()
	if err := w.command.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatalf("the workload failed: %v", err)
	}
	truth, err := verbsim.Read(w.truth)
	require.NoError(w.t, err)
	require.True(w.t, truth.OK)
	return truth
}

// lines calls f with every whole line of a file that may be growing.
func lines(t *testing.T, path string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		f(line)
	}
}

// period is from one moment to another.
type period struct{ from, to time.Time }

func (p period) has(at pcommon.Timestamp) bool {
	return at.AsTime().After(p.from) && at.AsTime().Before(p.to)
}

// spans counts the spans of the process that lie in a period.
func (c *collector) spans(pid int, in period) (n int) {
	lines(c.t, filepath.Join(c.dir, "traces.jsonl"), func(line []byte) {
		traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		require.NoError(c.t, err)
		for _, rs := range traces.ResourceSpans().All() {
			if !isOf(rs.Resource().Attributes(), pid) {
				continue
			}
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
				if in.has(span.StartTimestamp()) && in.has(span.EndTimestamp()) {
					n++
				}
			}
		}
	})
	return n
}

// queues returns the queues of the process that metrics of a period tell of,
// with the last state of each.
func (c *collector) queues(pid int, in period) map[int64]string {
	states := map[int64]string{}
	lines(c.t, filepath.Join(c.dir, "metrics.jsonl"), func(line []byte) {
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(c.t, err)
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
				if metric.Name() != "rdma.queues" {
					continue
				}
				for _, point := range metric.Sum().DataPoints().All() {
					if isOf(point.Attributes(), pid) && in.has(point.Timestamp()) && !point.Flags().NoRecordedValue() {
						qpn, _ := point.Attributes().Get("rdma.qp.number")
						state, _ := point.Attributes().Get("rdma.queue.state")
						states[qpn.Int()] = state.Str()
					}
				}
			}
		}
	})
	return states
}

func isOf(attributes pcommon.Map, pid int) bool {
	value, ok := attributes.Get("process.pid")
	return ok && value.Int() == int64(pid)
}

// kernelObjects are the BPF programs, maps and links that a process holds.
type kernelObjects struct {
	programs []ebpf.ProgramID
	maps     []ebpf.MapID
	links    []link.ID
}

var objectLine = regexp.MustCompile(`(?m)^(prog|map|link)_id:\s*(\d+)$`)

func (c *collector) kernelObjects() (held kernelObjects) {
	infos, err := filepath.Glob("/proc/" + strconv.Itoa(c.command.Process.Pid) + "/fdinfo/*")
	require.NoError(c.t, err)
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It was closed meanwhile.
		}
		for _, match := range objectLine.FindAllStringSubmatch(string(text), -1) {
			id, err := strconv.ParseUint(match[2], 10, 32)
			require.NoError(c.t, err)
			switch match[1] {
			case "prog":
				held.programs = append(held.programs, ebpf.ProgramID(id))
			case "map":
				held.maps = append(held.maps, ebpf.MapID(id))
			case "link":
				held.links = append(held.links, link.ID(id))
			}
		}
	}
	return held
}

// left counts those that are still in the kernel. Programs and maps are not opened:
// closing an array of programs leaves a reference to it with a worker, which a busy
// CPU keeps waiting, and so the next look would find the map again, and the next.
func (k kernelObjects) left(t *testing.T) (n int) {
	t.Helper()
	count := func(is bool, err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("asking whether a BPF object is left: %v", err)
		}
		if err == nil && is {
			n++
		}
	}
	for _, id := range k.programs {
		next, err := ebpf.ProgramGetNextID(id - 1)
		count(next == id, err)
	}
	for _, id := range k.maps {
		next, err := ebpf.MapGetNextID(id - 1)
		count(next == id, err)
	}
	for _, id := range k.links {
		l, err := link.NewFromID(id)
		count(true, err)
		if err == nil {
			_ = l.Close()
		}
	}
	return n
}

// checkNothingLeft: the kernel frees what a process held a moment after its end.
func (c *collector) checkNothingLeft(held kernelObjects) {
	c.t.Helper()
	require.NotEmpty(c.t, held.programs)
	require.NotEmpty(c.t, held.maps)
	require.NotEmpty(c.t, held.links)
	c.waitUntil("no BPF object of the collector is left", endLimit, func() bool { return held.left(c.t) == 0 })
}

// reloaded is a workload during which the collector loads its configuration anew.
type reloaded struct {
	name   string
	queues int
	*workload
}

func (r *reloaded) pid() int { return r.command.Process.Pid }

// On SIGHUP the collector loads its configuration anew: within five seconds all
// queues are tracked, and when they are aligned spans come again. That takes more
// posts than a queue may hold where wr_ids only rise, and a drain where they
// repeat. It then ends in order and leaves nothing in the kernel.
func TestReload(t *testing.T) {
	traces(t)
	const aligned = time.Minute
	// Each device has its share of the spans that are exported.
	workloads := []reloaded{
		{"wr_ids of a counter", 2, startWorkload(t, "rate", "--rate", "40000", "--qps", "2", "--device", "sim1", "--seconds", "0")},
		// Four queues in each direction.
		{"wr_ids that repeat", 8, startWorkload(t, "nccl", "--pause-after", "2000", "--pause-ms", "2500", "--seconds", "0")},
	}
	c := startCollector(t, toFiles, nil)
	c.waitForLog("Everything is ready", testbed.Patience)
	waitForAll := func(what string, limit time.Duration, reached func(*reloaded) bool) {
		t.Helper()
		for i := range workloads {
			w := &workloads[i]
			c.waitUntil(what+" of the workload with "+w.name, limit, func() bool { return reached(w) })
		}
	}
	tracked := func(in period) func(*reloaded) bool {
		return func(w *reloaded) bool { return len(c.queues(w.pid(), in)) == w.queues }
	}
	timed := func(in period) func(*reloaded) bool {
		return func(w *reloaded) bool { return c.spans(w.pid(), in) > 0 }
	}
	ever := period{to: time.Now().Add(time.Hour)}
	waitForAll("all queues", testbed.Patience, tracked(ever))
	waitForAll("spans", aligned, timed(ever))
	first := c.kernelObjects()

	for n := range 2 {
		var here crowd
		asked := time.Now()
		c.signal(syscall.SIGHUP)
		c.waitUntil("the collector starts anew", endLimit, func() bool {
			return strings.Count(c.log.String(), "Starting otelcol-rdma") == n+2
		})
		// What is after this is of the new tracer. That it is written takes a
		// little longer.
		anew := period{from: time.Now()}
		var soon time.Duration
		waitForAll("all queues again in time", testbed.Patience, func(w *reloaded) bool {
			soon = here.promised(t, 5*time.Second)
			anew.to = asked.Add(soon)
			return tracked(anew)(w)
		})
		seen := time.Since(asked)
		// That they are timed again is waited for once: the first time shows that the
		// second tracer begins as the first one did.
		if n == 0 {
			waitForAll("spans again", aligned, timed(period{from: anew.from, to: ever.to}))
		}
		t.Logf("stopped after %v, all queues seen again after %v, in time until %v, and done after %v",
			anew.from.Sub(asked), seen, soon, time.Since(asked))
	}
	c.checkNothingLeft(first)
	last := c.kernelObjects()
	c.signal(syscall.SIGTERM)
	assert.Zero(t, c.exitCode(endLimit))
	c.checkNothingLeft(last)
	for _, w := range workloads {
		assert.Len(t, w.end().Queues, w.queues, w.name)
	}
	assert.Equal(t, 2, strings.Count(c.log.String(), `"signal": "hangup"`))
}

// crowd is by how many tasks the CPUs are wanted meanwhile, as far as one looked.
type crowd struct{ tasks, looks int }

// promised is a time that is promised where there are CPUs to keep it: on a machine
// whose CPUs are each wanted by two tasks it is twice as long.
func (c *crowd) promised(t *testing.T, least time.Duration) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	var loads [3]float64
	var running int
	_, err = fmt.Sscanf(string(text), "%f %f %f %d/", &loads[0], &loads[1], &loads[2], &running)
	require.NoError(t, err)
	c.tasks += running - 1 // Besides the one that looks.
	c.looks++
	return time.Duration(float64(least) * max(1, float64(c.tasks)/float64(c.looks*runtime.NumCPU())))
}
