package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// resourcesAreListed holds the queue pairs, Completion Queues and memory regions of
// our netlink dump against those that the rdma tool prints, while a job runs.
func resourcesAreListed(ctx context.Context, g *Guest) (string, error) {
	p, err := g.startPair(ctx, perftest.Run{Tool: perftest.ReadLatency, Iterations: 200_000, Size: 64})
	if err != nil {
		return "", err
	}
	defer p.kill()
	resources, err := fabric.OpenResources()
	if err != nil {
		return "", err
	}
	defer func() { _ = resources.Close() }()
	var said string
	err = waitFor(ctx, patience, "both sides are connected", func() (bool, error) {
		said, err = compareResources(ctx, resources)
		return said != "", err
	})
	return said, err
}

// compareResources says nothing while the queues come and go.
func compareResources(ctx context.Context, resources *fabric.Resources) (string, error) {
	before, err := printedResources(ctx)
	if err != nil {
		return "", err
	}
	qps, err := resources.QPs()
	if err != nil {
		return "", err
	}
	cqs, err := resources.CQs()
	if err != nil {
		return "", err
	}
	mrs, err := resources.MRs()
	if err != nil {
		return "", err
	}
	after, err := printedResources(ctx)
	if err != nil || before != after || strings.Count(after, "type RC") != 2 {
		return "", err
	}
	var failed []error
	for _, q := range qps {
		failed = append(failed, printed(after, fmt.Sprintf("link %s/%d lqpn %d ", q.Device, *q.Port, q.Number), "state "+q.State, owner(q.Owner)))
	}
	for _, q := range cqs {
		failed = append(failed, printed(after, fmt.Sprintf("dev %s cqn %d cqe %d ", q.Device, *q.Number, q.Entries), owner(q.Owner)))
	}
	for _, m := range mrs {
		failed = append(failed, printed(after, fmt.Sprintf("dev %s mrn ", m.Device), fmt.Sprintf("mrlen %d ", m.Bytes), owner(m.Owner)))
	}
	if lines, listed := strings.Count(after, "\n"), len(qps)+len(cqs)+len(mrs); lines != listed {
		failed = append(failed, fmt.Errorf("%d resources listed, the rdma tool prints %d", listed, lines))
	}
	return fmt.Sprintf("%d queue pairs, %d Completion Queues and %d memory regions, as the rdma tool prints them",
		len(qps), len(cqs), len(mrs)), errors.Join(failed...)
}

// sequenceNumbers are what changes while a job runs.
var sequenceNumbers = regexp.MustCompile(`[rs]q-psn [0-9]+ `)

func printedResources(ctx context.Context) (string, error) {
	qps, errQPs := run(ctx, "rdma", "resource", "show", "qp")
	cqs, errCQs := run(ctx, "rdma", "resource", "show", "cq")
	mrs, errMRs := run(ctx, "rdma", "resource", "show", "mr")
	return sequenceNumbers.ReplaceAllString(qps, "") + cqs + mrs, errors.Join(errQPs, errCQs, errMRs)
}

// printed fails unless one line has all of the words.
func printed(text string, words ...string) error {
	for line := range strings.Lines(text) {
		missing := func(w string) bool { return !strings.Contains(line, w) }
		if !slices.ContainsFunc(words, missing) {
			return nil
		}
	}
	return fmt.Errorf("the rdma tool prints no line with %q", words)
}

func owner(o fabric.Owner) string {
	if o.Kernel != "" {
		return "comm [" + o.Kernel + "]"
	}
	return "pid " + strconv.Itoa(int(o.PID)) + " "
}
