package suite

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// controlTests hold what is told of queues against what the kernel's own tools
// print, and provoke asynchronous events.
func controlTests() []Test {
	return []Test{
		{"queues of ib_send_bw carry the kernel's numbers", sendBandwidthIsNamed},
		{"queues of rping carry the kernel's numbers", rpingIsNamed},
		{"port down and up are told", portEventsAreTold},
		{"overrun Completion Queue is told", overrunIsTold},
	}
}

// end is one of the two ends of a connection.
type end struct {
	device, address string
	// qps and cqs are what the rdma tool prints of the process.
	qps, cqs []kernelResource
	gid      netip.Addr
}

// endOf reads what the kernel's tools print of a process that has queues.
func endOf(ctx context.Context, p *process, device, address string) (end, error) {
	e := end{device: device, address: address}
	err := waitFor(ctx, patience, p.name()+" is connected", func() (bool, error) {
		if exited, status := p.exited(); exited {
			return false, fmt.Errorf("it ended (%v): %s", status, p.outputTail())
		}
		var errs [2]error
		e.qps, errs[0] = resourcesOf(ctx, "qp", p.pid())
		e.cqs, errs[1] = resourcesOf(ctx, "cq", p.pid())
		connected := len(e.qps) > 0 && len(e.cqs) > 0
		for _, q := range e.qps {
			connected = connected && q.RemoteQP != nil && *q.RemoteQP != 0
		}
		return connected, errors.Join(errs[:]...)
	})
	if err != nil {
		return e, err
	}
	e.gid, err = gidOf(ctx, device, gidIndex)
	return e, err
}

// checkNames compares the span of a request of this end with what the tools
// print.
func (e end) checkNames(s otlp.Span, peer end) error {
	number := func(key string) int {
		n, err := strconv.Atoi(s.Attributes[key])
		if err != nil {
			return -1
		}
		return n
	}
	qp := slices.IndexFunc(e.qps, func(q kernelResource) bool { return q.QPNumber != nil && *q.QPNumber == number("rdma.qp.number") })
	if qp < 0 || e.qps[qp].Device != e.device {
		return fmt.Errorf("no QP %s of %s among %+v", s.Attributes["rdma.qp.number"], e.device, e.qps)
	}
	if want := *e.qps[qp].RemoteQP; number("rdma.qp.remote_number") != want {
		return fmt.Errorf("remote QP %s, the kernel says %d", s.Attributes["rdma.qp.remote_number"], want)
	}
	// Of the two CQs of perftest that of the sends is made first.
	if cqs := cqNumbers(e.cqs); len(cqs) == 0 || number("rdma.cq.number") != cqs[0] {
		return fmt.Errorf("CQ %s (handle %q) is not the first of %d", s.Attributes["rdma.cq.number"], s.Attributes["rdma.cq.handle"], cqs)
	}
	for key, want := range map[string]netip.Addr{"rdma.local.gid": e.gid, "rdma.peer.gid": peer.gid} {
		if got, err := netip.ParseAddr(s.Attributes[key]); err != nil || got != want {
			return fmt.Errorf("%s is %q, ibv_devinfo prints %s", key, s.Attributes[key], want)
		}
	}
	for key, want := range map[string]string{
		"network.local.address": e.address, "network.peer.address": peer.address,
		"rdma.device.name": e.device, "rdma.device.port": "1", "rdma.qp.type": "rc",
	} {
		if s.Attributes[key] != want {
			return fmt.Errorf("%s is %q, want %q", key, s.Attributes[key], want)
		}
	}
	return nil
}

// cqNumbers returns the numbers in the order in which the CQs were made.
func cqNumbers(cqs []kernelResource) []int {
	var numbers []int
	for _, c := range cqs {
		if c.CQNumber != nil {
			numbers = append(numbers, *c.CQNumber)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// checkSpansOf waits for slow spans of a process that begin after a time, and
// checks each.
func (c *collector) checkSpansOf(ctx context.Context, pid int, since time.Time, local, peer end) (string, error) {
	var own []otlp.Span
	err := waitFor(ctx, patience, fmt.Sprintf("there is a span of process %d", pid), func() (bool, error) {
		spans, err := c.spans()
		own = nil
		for _, s := range spans {
			if s.Attributes["process.pid"] == strconv.Itoa(pid) && s.Start.After(since) {
				own = append(own, s)
			}
		}
		return len(own) > 0, err
	})
	if err != nil {
		return "", err
	}
	for _, s := range own {
		if err := local.checkNames(s, peer); err != nil {
			return "", fmt.Errorf("span %s: %w; all its attributes: %v", s.Name, err, s.Attributes)
		}
	}
	last := own[len(own)-1].Attributes
	return fmt.Sprintf("%d spans with QP %s → %s, CQ %s of %d, %s → %s", len(own), last["rdma.qp.number"], last["rdma.qp.remote_number"],
		last["rdma.cq.number"], cqNumbers(local.cqs), last["network.local.address"], last["network.peer.address"]), nil
}

// namesQueuesOf waits for a span of a process that has what only the kernel knows,
// which nobody but the collector has asked by now.
func (c *collector) namesQueuesOf(ctx context.Context, pid int) error {
	var last otlp.Span
	err := waitFor(ctx, patience, fmt.Sprintf("a span of process %d has the kernel's numbers", pid), func() (bool, error) {
		spans, err := c.spans()
		for _, s := range spans {
			if s.Attributes["process.pid"] != strconv.Itoa(pid) {
				continue
			}
			last = s
			unnamed := slices.ContainsFunc([]string{"rdma.qp.remote_number", "rdma.cq.number", "rdma.local.gid", "rdma.peer.gid"},
				func(key string) bool { return s.Attributes[key] == "" })
			if !unnamed {
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("%w; the last span: %v", err, last.Attributes)
	}
	return nil
}

// sendBandwidthIsNamed: only the client sends, so only it has spans.
func sendBandwidthIsNamed(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+injected.String()); err != nil {
		return "", err
	}
	if err := g.shiftNumbers(ctx); err != nil {
		return "", err
	}
	p, err := g.startPair(ctx, perftest.Run{Tool: perftest.SendBandwidth, Iterations: endless, Size: 512}, "nice", "-n", "19")
	if err != nil {
		return "", err
	}
	return c.comparePair(ctx, p.client, p.server, true)
}

// shiftNumbers takes a QP number of the server's device, so that the two ends of
// the next connection have different ones.
func (g *Guest) shiftNumbers(ctx context.Context) error {
	p, err := g.start("spare", pingpong, "-d", serverDevice, "-g", fmt.Sprint(gidIndex), "-p", fmt.Sprint(pingpongPort+1))
	if err != nil {
		return err
	}
	return waitListening(ctx, p, pingpongPort+1)
}

// rpingIsNamed: only the server of rping works with RDMA requests; both send.
func rpingIsNamed(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+injected.String()); err != nil {
		return "", err
	}
	client, server, err := g.startRping(ctx)
	if err != nil {
		return "", err
	}
	return c.comparePair(ctx, client, server, false)
}

// startRping starts a pair that runs until it is killed.
func (g *Guest) startRping(ctx context.Context) (client, server *process, err error) {
	if err := g.shiftNumbers(ctx); err != nil {
		return nil, nil, err
	}
	server, err = g.start("server", "rping", "-s", "-a", serverAddress, "-C", "10000")
	if err != nil {
		return nil, nil, err
	}
	err = waitFor(ctx, patience, "rping listens", func() (bool, error) {
		out, err := run(ctx, "rdma", "resource", "show", "cm_id")
		return strings.Contains(out, "LISTEN"), err
	})
	if err != nil {
		return nil, nil, err
	}
	client, err = g.start("client", "rping", "-c", "-a", serverAddress, "-I", clientAddress, "-C", "10000")
	return client, server, err
}

// comparePair compares the spans of the client, or of the server, with what the
// kernel's tools print while both run.
func (c *collector) comparePair(ctx context.Context, client, server *process, ofClient bool) (string, error) {
	here, err := endOf(ctx, client, clientDevice, clientAddress)
	if err != nil {
		return "", err
	}
	there, err := endOf(ctx, server, serverDevice, serverAddress)
	if err != nil {
		return "", err
	}
	if *here.qps[0].QPNumber == *there.qps[0].QPNumber {
		return "", fmt.Errorf("both ends have QP %d: the test cannot tell them apart", *here.qps[0].QPNumber)
	}
	begin := time.Now()
	if ofClient {
		return c.checkSpansOf(ctx, client.pid(), begin, here, there)
	}
	return c.checkSpansOf(ctx, server.pid(), begin, there, here)
}

// earlierQueuesAreNamed starts a collector under a connection that exists. The
// kernel tells of its queues when they are listed, which the collector must have
// done itself before comparePair does. The client pauses, so that the server's
// Send Queue is seen to be empty.
func earlierQueuesAreNamed(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	if err := errors.Join(impair(ctx, "delay "+injected.String()), g.shiftNumbers(ctx)); err != nil {
		return "", err
	}
	client, server, err := g.startSpinning(ctx)
	if err != nil {
		return "", err
	}
	if err := g.startCollector(ctx, atSites()); err != nil {
		return "", err
	}
	if err := g.collector.drains(ctx, client); err != nil {
		return "", err
	}
	if err := g.collector.namesQueuesOf(ctx, server.pid()); err != nil {
		return "", err
	}
	return g.collector.comparePair(ctx, client, server, false)
}

// drains lets a client pause, until its server's queue is synced: that is so with
// the first work request after a pause in which the queue was seen to be empty.
func (c *collector) drains(ctx context.Context, client *process) error {
	synced := otlp.Match{Service: pingpong, Metric: "rdma.queues", Attributes: map[string]string{
		"rdma.device.name": serverDevice, "rdma.queue.state": "synced",
	}}
	const pauses = 8
	var err error
	for range pauses {
		client.signal(syscall.SIGSTOP)
		if err := pause(ctx, 4*time.Second); err != nil {
			return err
		}
		client.signal(syscall.SIGCONT)
		err = waitFor(ctx, 4*time.Second, "the queue is synced", func() (bool, error) {
			all, err := c.metrics()
			return slices.ContainsFunc(all.Select(synced), func(p otlp.Point) bool { return p.Value > 0 }), err
		})
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("after %d pauses of the client: %w", pauses, err)
}

// startSpinning starts a pair of ibv_rc_pingpong that poll without rest, and
// with the lowest priority.
func (g *Guest) startSpinning(ctx context.Context) (client, server *process, err error) {
	args := func(device string, peer ...string) []string {
		return append([]string{
			"nice", "-n", "19", pingpong, "-d", device, "-g", fmt.Sprint(gidIndex), "-s", "512", "-n", fmt.Sprint(endless),
		}, peer...)
	}
	server, err = g.start("server", args(serverDevice)...)
	if err != nil {
		return nil, nil, err
	}
	if err := waitListening(ctx, server, pingpongPort); err != nil {
		return nil, nil, err
	}
	client, err = g.start("client", args(clientDevice, serverAddress)...)
	return client, server, err
}
