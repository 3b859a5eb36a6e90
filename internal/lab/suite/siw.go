package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// A soft-iWARP device stands on an interface of its own, so that the connection
// manager does not take a soft-RoCE device for the same address.
const (
	siwModule, siwDevice = "siw", "siw0"
	siwAddress           = "10.9.7.1"

	siwUp = `
modprobe siw
ip link add siwnet type dummy
ip addr add 10.9.7.1/24 dev siwnet
ip link set siwnet up
rdma link add siw0 type siw netdev siwnet
`
	siwDown = `
rdma link delete siw0
ip link del siwnet
`
	qpFatal = "qpfatal"
)

// fatalQPIsTold lets a queue pair of a process go fatal, after messages that arrive,
// all on a soft-iWARP device. As its doorbells go through the kernel's post_send,
// whatever is seen there too would make the counts too high.
func fatalQPIsTold(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := runLines(ctx, siwUp); err != nil {
		return "", err
	}
	said, err := g.fatalQP(ctx, c)
	for _, p := range g.processes {
		p.kill()
	}
	return said, errors.Join(err, runLines(ctx, siwDown))
}

func (g *Guest) fatalQP(ctx context.Context, c *collector) (string, error) {
	// It maps the provider's library, which is so probed before the first request.
	if _, err := g.start("keeper", "ibv_asyncwatch", "-d", siwDevice); err != nil {
		return "", err
	}
	how, err := c.probesSIW(ctx)
	if err != nil {
		return "", err
	}
	const messages = 100
	begin := time.Now()
	p, err := g.start(qpFatal, g.share+"/"+qpFatal, siwAddress, fmt.Sprint(messages))
	if err != nil {
		return "", err
	}
	r, took, err := c.awaitEvent(ctx, begin, func(r otlp.Record) bool { return r.Attributes["rdma.async_event.type"] == "qp_fatal" })
	if err != nil {
		return "", fmt.Errorf("%w; the program: %s", err, p.outputTail())
	}
	qp, err := p.isOfFatalQP(ctx, r)
	if err != nil {
		return "", err
	}
	failed := completionsOf(qpFatal, siwDevice, "send")
	failed.Attributes["error.type"] = "loc_qp_op_err"
	all := otlp.Match{Metric: "rdma.wqe.completions", Attributes: map[string]string{"rdma.device.name": siwDevice}}
	err = c.settles(ctx, []sum{
		{completionsOf(qpFatal, siwDevice, "send"), messages},
		{completionsOf(qpFatal, siwDevice, "recv"), messages},
		{failed, 1},
		{all, 2*messages + 1},
	})
	return fmt.Sprintf("queue pair %d of process %d went fatal, told within %s of its start; %d sends and receives counted once, 1 send failed; the kernel's verbs of %s probed by %s",
		qp, p.pid(), took.Round(time.Millisecond), messages, siwModule, how), errors.Join(err, c.balance(ctx))
}

// probesSIW waits until both the driver in the kernel and its provider are probed,
// and returns how the former is.
func (c *collector) probesSIW(ctx context.Context) (how string, err error) {
	err = waitFor(ctx, patience, "siw is probed in the kernel and in its provider", func() (bool, error) {
		telemetry, err := c.telemetry(ctx)
		if err != nil {
			return false, err
		}
		user := false
		for _, p := range telemetry.Select(otlp.Match{Metric: "otelcol_rdma_probes", Attributes: map[string]string{"provider": siwModule}}) {
			switch {
			case p.Value == 0:
			case p.Attributes["mode"] == "kernel":
				how = p.Attributes["link"]
			case p.Attributes["function"] == "poll_cq":
				user = true
			}
		}
		return user && how != "", nil
	})
	return how, err
}

var fatalQPLine = regexp.MustCompile(`event .* of queue pair (\d+)`)

// isOfFatalQP holds an event against what the rdma tool prints of the queues of the
// process, which has two queue pairs with two CQs each. It returns the number of the
// one that sent.
func (p *process) isOfFatalQP(ctx context.Context, r otlp.Record) (int, error) {
	out, err := p.output()
	if err != nil {
		return 0, err
	}
	m := fatalQPLine.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("the program was not told of a fatal queue pair: %s", p.outputTail())
	}
	qp, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	cqs, err := resourcesOf(ctx, "cq", p.pid())
	if err != nil {
		return 0, err
	}
	numbers := cqNumbers(cqs)
	if len(numbers) != 4 {
		return 0, fmt.Errorf("process %d has CQs %d: %s", p.pid(), numbers, p.outputTail())
	}
	for key, want := range map[string]string{
		// The CQ that it sends with is made first.
		"rdma.qp.number": m[1], "rdma.cq.number": strconv.Itoa(numbers[0]),
		"process.pid": strconv.Itoa(p.pid()), "rdma.device.name": siwDevice,
	} {
		if r.Attributes[key] != want {
			return 0, fmt.Errorf("%s is %q, want %q: %v", key, r.Attributes[key], want, r.Attributes)
		}
	}
	if r.Service != qpFatal {
		return 0, fmt.Errorf("the event is of service %q", r.Service)
	}
	return qp, nil
}
