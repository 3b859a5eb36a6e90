package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// agentLoad is what the observed program does while the agent is watched.
type agentLoad struct {
	perSecond int // 0: as many as the machine makes
	slowShare float64
}

var agentLoads = []agentLoad{
	{10_000, 0},
	{10_000, 0.001},
	{10_000, 0.1},
	{100_000, 0},
	{100_000, 0.001},
	{100_000, 0.1},
	{0, 0},
	{0, 0.001},
	{0, 0.1},
}

const (
	// slowBy makes a request slow beyond doubt: the threshold is 50 µs.
	slowBy = 200 * time.Microsecond
	// workloadNice puts the observed thread before what else wants its
	// processor, as one that has it to itself.
	workloadNice = -15
	agentLimit   = 60 * time.Second
	// agentReady is what the agent says of each library that it traces.
	agentReady = "probing"
)

// agent is the built collector with the receiver's defaults, writing everything
// that it exports to a file. By default a collector drops a message from the
// eleventh time in ten seconds on; which library it traces is to be seen here.
type agent struct {
	command *exec.Cmd
	stop    context.CancelFunc
	log     string
}

const agentConfig = `extensions: {%s}
receivers:
  rdma:
    root_path: %s
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
    error_mode: propagate
exporters:
  file:
    path: %s
service:
  extensions: [%s]
  telemetry:
    metrics:
      level: none
    logs:
      sampling:
        enabled: false
  pipelines:
    traces: {receivers: [rdma], exporters: [file]}
    metrics: {receivers: [rdma], exporters: [file]}
    logs: {receivers: [rdma], exporters: [file]}
`

// measureAgent watches one agent under every load, all loads again and again.
func (b *bench) measureAgent(ctx context.Context, r *result) error {
	s := b.schedule.agent
	b.progress("the agent: %d loads, %d times %s each", len(agentLoads), s.repeats, s.window)
	b.noteWindow(s.window)
	root, err := makeRoot()
	if err != nil {
		return err
	}
	a, err := b.startAgent(ctx, root, "")
	if err != nil {
		return err
	}
	measured := make([][]agentResult, len(agentLoads))
	disturbed := 0
	for range s.repeats {
		for i, load := range agentLoads {
			watch := b.watchForeign(strconv.Itoa(a.command.Process.Pid))
			one, err := b.watchAgent(ctx, a, root, load)
			if watch() {
				disturbed++
			}
			if err != nil {
				return errors.Join(err, a.close())
			}
			measured[i] = append(measured[i], one)
		}
	}
	if disturbed > 0 {
		b.note("another observer slowed the workload down in %d of %d windows of the agent", disturbed, s.repeats*len(agentLoads))
	}
	for _, repeats := range measured {
		r.Agent = append(r.Agent, middle(repeats))
	}
	if err := a.close(); err != nil {
		b.note("the agent did not end well, which changes no number: %v", err)
	}
	return nil
}

// noteWindow says what short windows do to numbers.
func (b *bench) noteWindow(window time.Duration) {
	if window%collectionInterval != 0 {
		b.note("the agent is watched for %s at a time, and collects every %s: its share of a collection differs from window to window", window, collectionInterval)
	}
}

// makeRoot makes the root directory that the agent sees: this machine's, with a
// sysfs in which the workload describes the simulated device.
func makeRoot() (string, error) {
	root, err := filepath.Abs(filepath.Join(outDirectory, "root"))
	if err != nil {
		return "", err
	}
	return root, errors.Join(
		os.RemoveAll(root),
		os.MkdirAll(filepath.Join(root, "sys"), 0o755),
		os.Symlink("/proc", filepath.Join(root, "proc")),
		os.Symlink("/etc", filepath.Join(root, "etc")),
		os.Symlink("/sys/devices", filepath.Join(root, "sys", "devices")),
	)
}

// startAgent starts the agent with an extension, if one is named.
func (b *bench) startAgent(ctx context.Context, root, extension string) (*agent, error) {
	config := filepath.Join(outDirectory, "agent.yaml")
	exported := filepath.Join(outDirectory, "agent.jsonl")
	if err := os.WriteFile(config, fmt.Appendf(nil, agentConfig, extensionConfig(extension), root, exported, extension), 0o644); err != nil {
		return nil, err
	}
	a := &agent{log: filepath.Join(outDirectory, "agent.log")}
	log, err := os.Create(a.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ctx, a.stop = context.WithCancel(ctx)
	a.command = command(ctx, syscall.SIGTERM, agentPath, "--config", config)
	a.command.Stdout, a.command.Stderr = log, log
	// A first program that uses the library lets the agent find it.
	holder, err := b.startHolder(ctx)
	if err != nil {
		return nil, err
	}
	defer holder.close()
	if err := a.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", agentPath, err)
	}
	err = waitFor(ctx, agentLimit, func() (bool, error) {
		text, err := os.ReadFile(a.log)
		return bytes.Contains(text, []byte(agentReady)) && bytes.Contains(text, []byte(filepath.Base(b.library))), err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the agent does not trace %s, see %s: %w", b.library, a.log, err), a.close())
	}
	return a, nil
}

func extensionConfig(name string) string {
	if name == "" {
		return ""
	}
	return name + ": {endpoint: \"localhost:0\"}"
}

func (a *agent) close() error {
	a.stop()
	if err := a.command.Wait(); !ended(err) {
		return fmt.Errorf("%s, see %s: %w", agentPath, a.log, err)
	}
	return nil
}

// watchAgent measures the agent while a workload runs.
func (b *bench) watchAgent(ctx context.Context, a *agent, root string, load agentLoad) (agentResult, error) {
	none := agentResult{}
	length := b.schedule.agent.window + agentWarmUp + time.Second/2
	var out bytes.Buffer
	workload := verbsim.Command(ctx, workloadPath, "rate",
		"--provider", b.library,
		"--sysroot", root,
		"--device", "bench0",
		"--seconds", seconds(length),
		"--rate", strconv.Itoa(load.perSecond),
		"--slow-share", strconv.FormatFloat(load.slowShare, 'g', -1, 64),
		"--spike-us", strconv.FormatInt(slowBy.Microseconds(), 10),
		"--depth", "256")
	workload.SysProcAttr = childAttributes()
	workload.Stdout, workload.Stderr = &out, &out
	if err := b.startObserved(workload); err != nil {
		return none, err
	}
	r, err := watch(ctx, a.command.Process.Pid, b.schedule.agent.window)
	if err := errors.Join(err, workload.Wait()); err != nil {
		return none, fmt.Errorf("%s: %w: %s", strings.Join(workload.Args, " "), err, lastLine(out.String()))
	}
	summary, err := verbsim.ParseSummary(out.Bytes())
	if err != nil {
		return none, err
	}
	r.AskedPerSecond, r.SlowShare = load.perSecond, load.slowShare
	r.CompletionsPerSecond = float64(summary.Completions) / summary.Seconds
	r.SlowMeasured = float64(summary.Slow) / float64(max(summary.Completions, 1))
	return r, nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// startObserved starts a program on the processor of the observed ones.
func (b *bench) startObserved(c *exec.Cmd) error {
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.Path, err)
	}
	pid := c.Process.Pid
	err := errors.Join(pin(pid, b.cpu), prefer(pid))
	if err != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	return err
}

// prefer puts a child before what else wants its processor. With automatic
// groups (sched(7)) its nice value counts within its session only, and that of
// the session against all others; without, there is no such file.
func prefer(pid int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(workloadNice)), 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, pid, workloadNice))
}

// watch measures a process for a time, after a moment to warm up.
func watch(ctx context.Context, pid int, window time.Duration) (agentResult, error) {
	var r agentResult
	if err := sleep(ctx, agentWarmUp); err != nil {
		return r, err
	}
	before, err := processorTime(pid)
	if err != nil {
		return r, err
	}
	begin := time.Now()
	if err := sleep(ctx, window); err != nil {
		return r, err
	}
	after, err := processorTime(pid)
	if err != nil {
		return r, err
	}
	r.CPUCores = (after - before).Seconds() / time.Since(begin).Seconds()
	objects, err := objectsOf(strconv.Itoa(pid))
	if err != nil {
		return r, err
	}
	r.MapBytes = objects.mapBytes()
	r.RSSBytes, err = residentBytes(pid)
	return r, err
}

// processorTime is what a process with all its threads, ended ones too, has
// used: its CPU-time clock, whose number is made from the pid
// (MAKE_PROCESS_CPUCLOCK, include/linux/posix-timers.h).
func processorTime(pid int) (time.Duration, error) {
	const cpuClockScheduler = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuClockScheduler), &ts); err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

func residentBytes(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return residentFrom(string(text))
}

// residentFrom reads VmRSS, which is in KiB.
func residentFrom(status string) (uint64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) != 2 || fields[1] != "kB" {
			break
		}
		kib, err := strconv.ParseUint(fields[0], 10, 64)
		return kib << 10, err
	}
	return 0, errors.New("the status of a process has no VmRSS in kB")
}

// middle takes the median of each number; all repeats are of one load.
func middle(repeats []agentResult) agentResult {
	r := repeats[0]
	pick := func(get func(agentResult) float64) float64 {
		values := make([]float64, 0, len(repeats))
		for _, one := range repeats {
			values = append(values, get(one))
		}
		return median(values)
	}
	r.CompletionsPerSecond = pick(func(a agentResult) float64 { return a.CompletionsPerSecond })
	r.SlowMeasured = pick(func(a agentResult) float64 { return a.SlowMeasured })
	r.CPUCores = pick(func(a agentResult) float64 { return a.CPUCores })
	r.RSSBytes = uint64(pick(func(a agentResult) float64 { return float64(a.RSSBytes) }))
	r.MapBytes = uint64(pick(func(a agentResult) float64 { return float64(a.MapBytes) }))
	return r
}
