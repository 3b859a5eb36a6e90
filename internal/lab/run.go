package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
	"github.com/rdmaradar/rdmaradar/internal/lab/suite"
)

// Boot is one run of the tests on one kernel.
type Boot struct {
	// Repository is the root of the checkout.
	Repository string
	Kernel     KernelLine
	// Tests are the names of the tests, Pattern selects the ones to run.
	Tests   []string
	Pattern string
	Timeout time.Duration
	// Service boots with systemd and runs the tests of the package, which are others.
	Service bool
	// Keep takes the results of an earlier run in place of another one, when all of its
	// tests passed and nothing that decides them has changed.
	Keep bool
}

// name is that of what the boot leaves.
func (b Boot) name() string {
	if b.Service {
		return b.Kernel.Name + "-service"
	}
	return b.Kernel.Name
}

// OutputDir returns where reports, consoles and logs of the lab go.
func OutputDir(repository string) string { return filepath.Join(repository, "out", "lab") }

// ReportPath returns where the merged report of a lab run is written.
func ReportPath(repository string) string { return filepath.Join(OutputDir(repository), "report.json") }

// Run boots the kernel, runs the tests in it and returns their results. A dead
// guest is not an error: the tests it did not report have failed, with its
// console as the reason. Progress goes to log, the console to
// out/lab/console-<line>.log.
func (b Boot) Run(ctx context.Context, cache *Cache, guestProgram string, log io.Writer) (report.Kernel, error) {
	contents, err := b.contents(guestProgram)
	if err != nil {
		return report.Kernel{}, err
	}
	fingerprint, err := b.fingerprint(ctx, cache, contents)
	if err != nil {
		return report.Kernel{}, err
	}
	if earlier, found := cache.results(b.name(), fingerprint); found && b.Keep {
		return earlier, nil
	}
	results, err := b.boot(ctx, cache, contents, log)
	if err != nil {
		return results, errors.Join(err, cache.forget(b.name()))
	}
	return results, b.keep(cache, fingerprint, results)
}

// keep remembers a run of all tests that passed. One that failed is forgotten, with the
// one before: what fails now and then has to run again.
func (b Boot) keep(cache *Cache, fingerprint string, results report.Kernel) error {
	if !results.Passed() {
		return cache.forget(b.name())
	}
	if b.Pattern != "" {
		return nil
	}
	return cache.keep(b.name(), fingerprint, results)
}

func (b Boot) boot(ctx context.Context, cache *Cache, contents map[string]string, log io.Writer) (report.Kernel, error) {
	share, err := b.prepareShare(contents)
	if err != nil {
		return report.Kernel{}, err
	}
	console, err := os.Create(filepath.Join(OutputDir(b.Repository), "console-"+b.name()+".log"))
	if err != nil {
		return report.Kernel{}, err
	}
	defer func() { _ = console.Close() }()

	begin := time.Now()
	status, runErr := Machine{
		Kernel: b.Kernel, Share: share, Timeout: b.Timeout, MemoryMiB: 1536,
		Command: Quote([]string{"./guest", "-share", "/mnt", "-run", b.Pattern, "-service=" + strconv.FormatBool(b.Service)}),
		Console: io.MultiWriter(console, log), Systemd: b.Service,
	}.Run(ctx, cache)
	_, _ = fmt.Fprintf(log, "kernel %s: guest ran for %s\n", b.name(), time.Since(begin).Round(time.Second))
	died, err := deathOf(status, runErr)
	if err != nil {
		return report.Kernel{}, err
	}
	results, err := b.results(share, died)
	return results, errors.Join(err, dropContents(share, contents))
}

// deathOf says how the guest ended before its time, "" when it did not.
func deathOf(status int, err error) (string, error) {
	var dead *DeadGuestError
	switch {
	case errors.As(err, &dead):
		return dead.Error(), nil
	case err != nil:
		return "", err
	case status != 0:
		return fmt.Sprintf("the guest program ended with status %d, see the console", status), nil
	default:
		return "", nil
	}
}

func (b Boot) results(share, died string) (report.Kernel, error) {
	events, err := os.Open(filepath.Join(share, "events.jsonl"))
	if os.IsNotExist(err) {
		events, err = os.Open(os.DevNull)
	}
	if err != nil {
		return report.Kernel{}, err
	}
	defer func() { _ = events.Close() }()
	return report.Read(events, b.Kernel.Name, b.Tests, died)
}

// CopyExecutable copies a file to one that may be executed.
func CopyExecutable(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// verbsPrograms names the programs that the tests start: they overrun a Completion
// Queue, make a queue pair go fatal, post and poll through the extended verbs,
// register memory, send over RDS and SMC, and have rdma-core linked in.
func verbsPrograms() []string {
	return []string{"overrun", "qpfatal", "extended", "regions", "rds", "smc", linkedTool}
}

const linkedTool = "linked"

// librariesOf are what a verbs program is linked with. What is linked in has no
// names of functions: programs that are shipped have none.
func librariesOf(name string) []string {
	if name != linkedTool {
		return []string{"-Wl,--as-needed", "-libverbs", "-lrdmacm"}
	}
	return []string{
		"-DRDMA_STATIC_PROVIDERS=rxe", "-static", "-s",
		"-Wl,--start-group", "-libverbs", "-lrxe-rdmav34", "-lnl-route-3", "-lnl-3", "-lpthread", "-Wl,--end-group",
	}
}

// builtPrograms names what is built beside the guest program: the tests of the
// tracer that change the kernel they run on, and the verbs programs.
func builtPrograms() []string { return append(verbsPrograms(), suite.TracerTests) }

// BuildGuest builds the guest program, and what it starts beside it. It returns the
// path of the former in dir.
func BuildGuest(ctx context.Context, repository, dir string) (string, error) {
	target := filepath.Join(dir, "guest")
	tests := filepath.Join(dir, suite.TracerTests)
	err := errors.Join(
		BuildStatic(ctx, repository, dir, "guest", "./internal/lab/guest"),
		goStatic(ctx, repository, "test", "-c", "-trimpath", "-tags", "guest", "-o", tests, "./internal/tracer"),
	)
	if err != nil {
		return "", err
	}
	for _, name := range verbsPrograms() {
		if err := BuildVerbsProgram(ctx, repository, dir, name); err != nil {
			return "", err
		}
	}
	return target, nil
}

// BuildStatic builds a program that needs no libraries, in dir, from a package.
func BuildStatic(ctx context.Context, repository, dir, name, pkg string) error {
	return goStatic(ctx, repository, "build", "-buildvcs=false", "-trimpath", "-o", filepath.Join(dir, name), pkg)
}

// goStatic runs the go command for a program that needs no libraries.
func goStatic(ctx context.Context, repository string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// BuildVerbsProgram builds a program of internal/lab that uses verbs, in dir.
func BuildVerbsProgram(ctx context.Context, repository, dir, name string) error {
	source := filepath.Join(repository, "internal", "lab", name, name+".c")
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", filepath.Join(dir, name), source}, librariesOf(name)...)
	if out, err := exec.CommandContext(ctx, "gcc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s, which needs gcc, libibverbs-dev and librdmacm-dev: %w: %s", source, err, out)
	}
	return nil
}
