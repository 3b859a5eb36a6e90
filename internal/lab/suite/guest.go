package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

// workDir is in memory: the share is too slow for files that are written often.
const workDir = "/tmp/lab"

// Guest is the machine the tests run on.
type Guest struct {
	// share is where logs outlive the guest.
	share string
	// collectorPath is the collector, copied to memory.
	collectorPath string
	// dir is the directory of the present test, in memory.
	dir string
	// collector is the running one, nil when there is none; collectors counts
	// all that were started.
	collector  *collector
	collectors int
	// keeper holds a device open from before every collector, so that the
	// provider's library is mapped when one starts.
	keeper    *process
	processes []*process
	// linked is kept for the test of linked programs, nil when there is none.
	linked *earlier
	// lastWork is when the last process of an earlier test ended.
	lastWork time.Time
	kernel   kernelLog
	// throughput and kernelVerbs are what was measured.
	throughput  []report.Throughput
	kernelVerbs []report.KernelVerbs
	programs    map[int]string
	// managementCQs are the numbers of the CQs of the devices' management.
	managementCQs []int
}

// Prepare sets up the devices and copies the collector into memory.
func Prepare(ctx context.Context, share, collector string) (*Guest, error) {
	g := &Guest{share: share, collectorPath: "/tmp/otelcol-rdma"}
	if err := copyFile(collector, g.collectorPath, 0o755); err != nil {
		return nil, fmt.Errorf("collector: %w", err)
	}
	if err := setUpLink(ctx); err != nil {
		return nil, err
	}
	if err := g.kernel.selfTest(); err != nil {
		return nil, err
	}
	var err error
	if g.programs, err = bpfPrograms(ctx); err != nil {
		return nil, err
	}
	if g.managementCQs, err = managementCQs(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(workDir, 0o755); err != nil {
		return nil, err
	}
	g.keeper, err = startProcess(filepath.Join(workDir, "keeper.log"), "ibv_asyncwatch", "-d", clientDevice)
	if err != nil {
		return nil, err
	}
	return g, waitFor(ctx, patience, "ibv_asyncwatch maps "+providerLibrary, func() (bool, error) {
		return g.keeper.maps(providerLibrary)
	})
}

func copyFile(from, to string, mode os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}

func (g *Guest) begin(name string) error {
	g.dir = filepath.Join(workDir, slug(name))
	g.lastWork, g.processes = g.worked(), nil
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	return g.kernel.mark()
}

func slug(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// start starts a program with its output in a file of the test's directory and
// ends it with the test.
func (g *Guest) start(name string, args ...string) (*process, error) {
	p, err := startProcess(filepath.Join(g.dir, name+".log"), args...)
	if err == nil {
		g.processes = append(g.processes, p)
	}
	return p, err
}

// worked returns until when there was work to be seen: now while a process of the
// test runs.
func (g *Guest) worked() time.Time {
	last := g.lastWork
	for _, p := range g.processes {
		if exited, _ := p.exited(); !exited {
			return time.Now()
		}
		if p.ended.After(last) {
			last = p.ended
		}
	}
	return last
}

// tidy ends what the test started and reports what it broke or left behind.
func (g *Guest) tidy() error {
	for _, p := range g.processes {
		p.kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	err := errors.Join(wire.Veth().Clear(ctx), g.collectorLives(), g.kernel.clean())
	if g.collector == nil {
		err = errors.Join(err, g.nothingLeft(ctx))
	}
	if exited, _ := g.keeper.exited(); exited {
		err = errors.Join(err, fmt.Errorf("ibv_asyncwatch, a bystander with the library mapped, died: %s", g.keeper.outputTail()))
	}
	return errors.Join(err, g.keepLogs(g.dir))
}

// collectorLives reports a collector that ended by itself and forgets it.
func (g *Guest) collectorLives() error {
	if g.collector == nil {
		return nil
	}
	exited, status := g.collector.exited()
	if !exited {
		return nil
	}
	err := fmt.Errorf("the collector ended (%v): %s", status, g.collector.outputTail())
	return errors.Join(err, g.killCollector())
}

// keptFile bounds what a test leaves in the share.
const keptFile = 16 << 20

// keepLogs moves a directory's files to the share and frees the memory.
func (g *Guest) keepLogs(dir string) error {
	target := filepath.Join(g.share, "logs", filepath.Base(dir))
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > keptFile {
			continue
		}
		if err := copyFile(filepath.Join(dir, f.Name()), filepath.Join(target, f.Name()), 0o644); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// Close ends the collector and the keeper.
func (g *Guest) Close() error {
	var err error
	if g.collector != nil {
		err = g.killCollector()
	}
	if g.linked != nil {
		g.linked.program.kill()
	}
	g.keeper.kill()
	return err
}

// patience bounds the wait for what takes a second or two on an idle machine. It
// asserts nothing about time: a busy host stretches everything that runs here.
const patience = time.Minute

// attempts is how often something is tried that a busy host can spoil.
const attempts = 3

// prompt does something until it took no longer than its deadline, a few times. What
// was late before is in note, which the report is to have: code that is always late
// fails, code that is late at times shows there.
func prompt(deadline time.Duration, do func() (took time.Duration, err error)) (note string, err error) {
	var late []string
	for range attempts {
		took, err := do()
		if err != nil || took <= deadline {
			return lateBefore(late), err
		}
		late = append(late, took.Round(time.Millisecond).String())
	}
	return "", fmt.Errorf("it took %s, never %s or less", strings.Join(late, ", "), deadline)
}

func lateBefore(late []string) string {
	if len(late) == 0 {
		return ""
	}
	return "; it was late before, " + strings.Join(late, " and ")
}

// waitFor polls until the condition holds, and says what it waited for when it
// never does.
func waitFor(ctx context.Context, limit time.Duration, what string, holds func() (bool, error)) error {
	deadline := time.Now().Add(limit)
	for {
		ok, err := holds()
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s in vain until %s", limit, what)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
