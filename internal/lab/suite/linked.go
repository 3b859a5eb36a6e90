package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

const (
	// linkedProgram is internal/lab/linked, built on the host.
	linkedProgram = "linked"
	// linkedWrites and linkedBytes are what it writes at a time, as in its source.
	linkedWrites = 400
	linkedBytes  = 512
)

// linkedIsSeen starts a collector under a program that has rdma-core linked in
// and is stripped: only the queue pair that the kernel has of it leads to its
// functions.
func linkedIsSeen(ctx context.Context, g *Guest) (string, error) {
	before, err := g.linkedBeforeCollector(ctx)
	if err != nil {
		return "", err
	}
	c := g.collector
	if err := c.probesLinked(ctx); err != nil {
		return "", err
	}
	// One that is started now uses the same file.
	after, err := g.startLinked(ctx)
	if err != nil {
		return "", err
	}
	if err := c.mark(ctx, g.worked()); err != nil {
		return "", err
	}
	for _, p := range []*told{before, after} {
		for _, step := range []struct {
			signal syscall.Signal
			answer string
		}{{syscall.SIGUSR1, "wrote"}, {syscall.SIGUSR2, "replaced"}, {syscall.SIGUSR1, "wrote"}} {
			if err := p.tell(ctx, step.signal, step.answer); err != nil {
				return "", err
			}
		}
	}
	const writes = 4 * linkedWrites
	expected := []sum{
		{completionsOf(linkedProgram, clientDevice, "rdma_write"), writes},
		{otlp.Match{Service: linkedProgram, Metric: "rdma.io", Attributes: map[string]string{"network.io.direction": "transmit"}}, writes * linkedBytes},
	}
	if err := errors.Join(c.settles(ctx, expected), c.balance(ctx), c.hasLinkedQueues(ctx, 2), c.hasLinkedRoute()); err != nil {
		return "", err
	}
	// All but those on the queue pair from before the collector, which starts unsynced.
	const seenFromStart = writes - linkedWrites
	timed := c.histogram(otlp.Match{Service: linkedProgram, Metric: "rdma.wqe.duration"}).Count
	if timed != seenFromStart {
		return "", fmt.Errorf("%d of %d writes were timed, %d were on queue pairs made under the collector", timed, writes, seenFromStart)
	}
	return fmt.Sprintf("%d writes of 2 processes, one from before the collector, %d of them timed; queue pairs that were destroyed are gone", writes, timed), nil
}

// earlier is a linked program that ran before a collector, and outlives the test that
// started both.
type earlier struct {
	program   *told
	collector *collector
}

// linkedBeforeCollector returns a linked program that the running collector found
// running. A collector that was started under one already serves.
func (g *Guest) linkedBeforeCollector(ctx context.Context) (*told, error) {
	if g.collector == nil || g.linked == nil || g.linked.collector != g.collector {
		if err := g.startUnderLinked(ctx); err != nil {
			return nil, err
		}
	}
	before := g.linked.program
	g.linked, g.processes = nil, append(g.processes, before.process)
	return before, nil
}

func (g *Guest) startUnderLinked(ctx context.Context) error {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return err
		}
	}
	if g.linked != nil {
		g.linked.program.kill()
	}
	before, err := g.startLinkedEarly(ctx)
	if err != nil {
		return err
	}
	err = g.startCollector(ctx, atSites())
	g.linked = &earlier{before, g.collector}
	return err
}

// startLinkedEarly starts a linked program that does not end with the test, and lets
// it write.
func (g *Guest) startLinkedEarly(ctx context.Context) (*told, error) {
	command, err := g.linkedCommand(ctx, clientDevice)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(filepath.Join(workDir, linkedProgram+"-early.log"), command...)
	if err != nil {
		return nil, err
	}
	t := &told{process: p}
	if err := errors.Join(t.answered(ctx, "ready"), t.tell(ctx, syscall.SIGUSR1, "wrote")); err != nil {
		p.kill()
		return nil, err
	}
	return t, nil
}

// told is a process that does what signals tell it to, and answers.
type told struct {
	*process
	answers int
}

func (g *Guest) startLinked(ctx context.Context) (*told, error) {
	return g.startLinkedOn(ctx, clientDevice)
}

func (g *Guest) startLinkedOn(ctx context.Context, device string) (*told, error) {
	command, err := g.linkedCommand(ctx, device)
	if err != nil {
		return nil, err
	}
	p, err := g.start(fmt.Sprintf("%s-%d", linkedProgram, len(g.processes)), command...)
	if err != nil {
		return nil, err
	}
	t := &told{process: p}
	return t, t.answered(ctx, "ready")
}

// linkedCommand is how a linked program is started on a device. It is copied from the
// shared directory, whose file system takes no probes.
func (g *Guest) linkedCommand(ctx context.Context, device string) ([]string, error) {
	local := filepath.Join(workDir, linkedProgram)
	if _, err := run(ctx, "cp", filepath.Join(g.share, linkedProgram), local+".new"); err != nil {
		return nil, err
	}
	if _, err := run(ctx, "mv", "--no-clobber", local+".new", local); err != nil {
		return nil, err
	}
	return []string{local, device, fmt.Sprint(gidIndex)}, nil
}

// tell sends a signal and waits for the answer.
func (t *told) tell(ctx context.Context, signal syscall.Signal, answer string) error {
	t.signal(signal)
	return t.answered(ctx, answer)
}

func (t *told) answered(ctx context.Context, answer string) error {
	t.answers++
	return waitFor(ctx, patience, t.name()+" says "+answer, func() (bool, error) {
		if exited, status := t.exited(); exited {
			return false, fmt.Errorf("it ended (%v): %s", status, t.outputTail())
		}
		text, err := t.output()
		lines := strings.Fields(text)
		return len(lines) == t.answers && lines[len(lines)-1] == answer, err
	})
}

// probesLinked waits until poll_cq of the program is observed.
func (c *collector) probesLinked(ctx context.Context) error {
	polls := otlp.Match{Metric: "otelcol_rdma_probes", Attributes: map[string]string{"provider": linkedProgram, "function": "poll_cq"}}
	return waitFor(ctx, patience, "the functions of "+linkedProgram+" are probed", func() (bool, error) {
		telemetry, err := c.telemetry(ctx)
		return telemetry.Total(polls) > 0, err
	})
}

// hasLinkedRoute: both processes talk to their own port.
func (c *collector) hasLinkedRoute() error {
	route := otlp.Match{Service: linkedProgram, Metric: "rdma.route.queues", Attributes: map[string]string{
		"rdma.device.name": clientDevice, "rdma.device.port": "1",
		"network.local.address": clientAddress, "network.peer.address": clientAddress,
	}}
	if got := c.all.Latest().Total(route); got != 2 {
		return fmt.Errorf("%v queue pairs lead from %s to itself, not 2: %v", got, clientAddress,
			c.all.Latest().Select(otlp.Match{Service: linkedProgram, Metric: "rdma.route.queues"}))
	}
	route.Metric = "rdma.route.throughput"
	if !slices.ContainsFunc(c.all.Select(route), func(p otlp.Point) bool { return p.Value > 0 }) {
		return fmt.Errorf("nothing went over the route from %s to itself", clientAddress)
	}
	return nil
}

// hasLinkedQueues waits until so many queue pairs of the program are known.
func (c *collector) hasLinkedQueues(ctx context.Context, want float64) error {
	got := -1.0
	err := waitFor(ctx, patience, "only the queue pairs that there are are known", func() (bool, error) {
		_, err := c.metrics()
		got = queuesNow(c.all, linkedProgram)
		return got == want, err
	})
	if err != nil {
		err = fmt.Errorf("%w: %v queue pairs, there are %v", err, got, want)
	}
	return err
}
