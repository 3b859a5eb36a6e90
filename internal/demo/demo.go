package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	outDirectory  = "out/demo"
	collectorPath = "bin/otelcol-rdma"
	workloadPath  = "bin/verbsim"
	configPath    = "config/demo.yaml"
	// deviceName is the simulated device, the one that configPath takes: what else
	// runs on this machine neither shows in the table nor takes room in it.
	deviceName = "demo0"

	spikeMicroseconds = 450
	spikesPerSecond   = 3

	// priority is the nice value of what posts: it goes before the rest of this machine, as
	// a thread that has a processor to itself would.
	priority = "-15"

	collectorLog = "collector.log"

	pollInterval = 50 * time.Millisecond
	// readyLimit bounds the start of the collector, which traces when it says
	// readyText.
	readyLimit = 30 * time.Second
	readyText  = "Everything is ready"
	// showLimit is how soon a slow work request must be on the screen.
	showLimit = 5 * time.Second
	// drainTime lets the collector export what the workload did last: a slow
	// completion leaves it after at most 2 s.
	drainTime = 3 * time.Second
)

// demo is one run of the demonstration.
type demo struct {
	length time.Duration
	out    io.Writer
	table  table

	traces   launch.Follower
	exported []slowRequest
}

func (d *demo) run(ctx context.Context) error {
	if err := checkPrograms(collectorPath, workloadPath, configPath); err != nil {
		return err
	}
	root, err := prepare(outDirectory)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "For %s a simulated job posts as NCCL does; its device delays %d requests a second by %d µs, on one queue pair.\n\n",
		d.length, spikesPerSecond, spikeMicroseconds)
	d.traces.Path = inOut("traces.jsonl")
	defer d.traces.Close()

	collector, err := startCollector(ctx, root)
	if err != nil {
		return err
	}
	if err := d.tellPage(); err != nil {
		collector.Stop()
		return errors.Join(err, collector.Wait())
	}
	err = d.runWorkload(ctx, collector, root)
	collector.Stop()
	if err := errors.Join(err, collector.Wait()); err != nil {
		return err
	}
	if err := d.show(); err != nil {
		return err
	}
	return d.summarise()
}

func inOut(name string) string { return filepath.Join(outDirectory, name) }

// prepare empties the directory of the demonstration and makes in it the root
// that the collector sees: this machine's name and processes, with a sysfs of
// its own, in which the workload describes the simulated device.
func prepare(directory string) (root string, err error) {
	if err := os.RemoveAll(directory); err != nil {
		return "", err
	}
	root, err = filepath.Abs(filepath.Join(directory, "root"))
	if err != nil {
		return "", err
	}
	for _, name := range []string{"sys", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return "", err
		}
	}
	return root, errors.Join(
		os.Symlink("/proc", filepath.Join(root, "proc")),
		os.Symlink("/sys/devices", filepath.Join(root, "sys", "devices")),
		copyIfThere("/etc/hostname", filepath.Join(root, "etc", "hostname")),
		copyIfThere("/etc/machine-id", filepath.Join(root, "etc", "machine-id")),
	)
}

// copyIfThere copies a small file. The receiver follows links inside of its root,
// so a link to the file would lead nowhere.
func copyIfThere(from, to string) error {
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

func startCollector(ctx context.Context, root string) (*launch.Child, error) {
	collector, err := launch.Start(ctx, inOut(collectorLog), collectorPath,
		"--config", configPath,
		"--config", "yaml:receivers::rdma::root_path: "+root)
	if err != nil {
		return nil, err
	}
	if err := collector.AwaitLine(ctx, readyText, readyLimit); err != nil {
		collector.Stop()
		_ = collector.Wait()
		return nil, err
	}
	return collector, nil
}

// pageAddress is that of the radar page in the collector's log.
var pageAddress = regexp.MustCompile(`http://(?:127\.0\.0\.1|\[::1\]):\d+/[\w-]+/`)

// tellPage prints where the radar page is.
func (d *demo) tellPage() error {
	log, err := os.ReadFile(inOut(collectorLog))
	if err != nil {
		return err
	}
	address := pageAddress.Find(log)
	if address == nil {
		return fmt.Errorf("%s does not tell the address of the radar page: where it says that the port is taken, stop who has it, such as another collector", inOut(collectorLog))
	}
	_, err = fmt.Fprintf(d.out, "The radar page, meanwhile: %s\n\n", address)
	return err
}

// runWorkload runs the simulated job and shows what the collector exports
// meanwhile.
func (d *demo) runWorkload(ctx context.Context, collector *launch.Child, root string) error {
	// A library is probed when a program first uses it. This one goes before the
	// job, which is to be followed from its first request. What delays it would fill the
	// table before the job begins.
	first := exec.CommandContext(ctx, "nice", "-n", priority, workloadPath, "perftest-lat", "--seconds", "1.5", "--device", deviceName, "--sysroot", root)
	if out, err := first.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", first, err, out)
	}
	workload, err := launch.Start(ctx, inOut("workload.log"), "nice", workloadArguments(d.length, root)...)
	if err != nil {
		return err
	}
	err = d.follow(ctx, collector, workload)
	workload.Stop()
	return errors.Join(err, workload.Wait())
}

// workloadArguments describe a job as NCCL posts it: on several queues that
// share a Completion Queue, chains of which the last request is signaled. The
// device delays a few requests a second on the first queue. Nothing is delayed in
// the beginning: a collector that meets the library for the first time may find
// the queues made already, and times them once it is sure of them.
func workloadArguments(length time.Duration, root string) []string {
	return []string{
		"-n", priority, workloadPath, "nccl",
		"--device", deviceName,
		"--seconds", strconv.FormatFloat(length.Seconds(), 'f', -1, 64),
		"--spike-us", strconv.Itoa(spikeMicroseconds),
		"--spikes-per-second", strconv.Itoa(spikesPerSecond),
		"--start-delay-ms", "500",
		"--warmup-quiet-ms", "1000",
		"--truth", inOut("truth.json"),
		"--sysroot", root,
	}
}

// follow shows slow work requests until the workload has ended and what it did
// last has had the time to come.
func (d *demo) follow(ctx context.Context, collector, workload *launch.Child) error {
	var end time.Time
	for end.IsZero() || time.Since(end) < drainTime {
		if err := launch.Sleep(ctx, pollInterval); err != nil {
			return err
		}
		if err := d.show(); err != nil {
			return err
		}
		if collector.Ended() {
			return errors.New("the collector ended early")
		}
		if end.IsZero() && workload.Ended() {
			end = time.Now()
		}
	}
	return nil
}

// show adds to the table what has been exported since the last call.
func (d *demo) show() error {
	lines, err := d.traces.Lines()
	if err != nil {
		return err
	}
	var fresh []slowRequest
	for _, line := range lines {
		requests, err := parseTraces(line)
		if err != nil {
			return fmt.Errorf("%s: %w", d.traces.Path, err)
		}
		fresh = append(fresh, requests...)
	}
	slices.SortFunc(fresh, func(a, b slowRequest) int { return a.Start.Compare(b.Start) })
	for i := range fresh {
		d.table.add(fresh[i])
		fresh[i].Late = time.Since(fresh[i].End)
	}
	d.exported = append(d.exported, fresh...)
	return nil
}

// summarise compares what was shown with what the workload says it did.
func (d *demo) summarise() error {
	truth, err := readTruth(inOut("truth.json"))
	if err != nil {
		return err
	}
	verdict := judge(truth, d.exported)
	late := latest(truth.pid, d.exported)
	fmt.Fprintln(d.out)
	verdict.print(d.out)
	fmt.Fprintf(d.out, "on the screen        %s after completion at most\n", late.Round(10*time.Millisecond))
	fmt.Fprintf(d.out, "OTLP                 %s, %s, %s\n", inOut("traces.jsonl"), inOut("metrics.jsonl"), inOut("logs.jsonl"))
	return errors.Join(verdict.err(), checkLatest(late), checkWritten("metrics.jsonl"))
}

// latest is the longest time from the end of a request of the process to its row.
func latest(pid int64, exported []slowRequest) time.Duration {
	var late time.Duration
	for _, request := range exported {
		if request.PID == pid {
			late = max(late, request.Late)
		}
	}
	return late
}

func checkLatest(late time.Duration) error {
	if late <= showLimit {
		return nil
	}
	return fmt.Errorf("a slow request was on the screen only %s after its completion, more than %s", late.Round(10*time.Millisecond), showLimit)
}

func checkWritten(name string) error {
	info, err := os.Stat(inOut(name))
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return fmt.Errorf("%s is empty: the collector exported nothing to it", inOut(name))
	}
	return nil
}
