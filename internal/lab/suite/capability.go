package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// rights are what a collector runs with, and what has to come of it.
type rights struct {
	name string
	// user is an unprivileged user with these capabilities, root without.
	user         bool
	capabilities []string
	// hidden is set where it does not see /sys/kernel/btf.
	hidden bool
	// status is that of the component, says what has to be in it.
	status, says string
	// traces tells that processes are traced, kernel by which links consumers in
	// the kernel are, "" when they are not.
	traces bool
	kernel string
	// paranoid is kernel.perf_event_paranoid: with more than 2 a kprobe takes
	// CAP_SYS_ADMIN.
	paranoid int
}

const (
	statusOK          = "StatusOK"
	statusRecoverable = "StatusRecoverableError"
	statusPermanent   = "StatusPermanentError"
)

// debiansParanoid is what Debian sets, plainParanoid what Linux itself does.
const debiansParanoid, plainParanoid = 3, 2

// allRights are those that buy something each, and then all but with types of the
// kernel hidden. Before Linux 6.6 probes in user space take CAP_SYS_ADMIN too.
func allRights(manyAtOnce bool) []rights {
	loads := []string{"bpf", "perfmon"}
	reads := []string{"bpf", "perfmon", "sys_ptrace", "dac_read_search"}
	administers := []string{"bpf", "perfmon", "sys_ptrace", "dac_read_search", "sys_admin"}
	list := []rights{
		{name: "an unprivileged user", user: true, paranoid: debiansParanoid, status: statusPermanent, says: "needs CAP_BPF and CAP_PERFMON"},
		{name: "CAP_BPF", user: true, capabilities: []string{"bpf"}, paranoid: debiansParanoid, status: statusPermanent, says: "needs CAP_PERFMON"},
		{name: "CAP_PERFMON", user: true, capabilities: []string{"perfmon"}, paranoid: debiansParanoid, status: statusPermanent, says: "needs CAP_BPF"},
	}
	if manyAtOnce {
		list = append(list, []rights{
			{
				name: "CAP_BPF and CAP_PERFMON, perf_event_paranoid 2", user: true, capabilities: loads, paranoid: plainParanoid,
				traces: true, kernel: "kprobe", status: statusRecoverable, says: "needs CAP_SYS_PTRACE",
			},
			{
				name: "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, perf_event_paranoid 2", user: true, capabilities: reads, paranoid: plainParanoid,
				traces: true, kernel: "kprobe", status: statusOK,
			},
			{
				name: "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, perf_event_paranoid 3", user: true, capabilities: reads, paranoid: debiansParanoid,
				traces: true, status: statusRecoverable, says: "perf_event_paranoid",
			},
		}...)
	} else {
		list = append(list, []rights{
			{
				name: "CAP_BPF and CAP_PERFMON", user: true, capabilities: loads, paranoid: debiansParanoid,
				status: statusPermanent, says: "needs CAP_SYS_ADMIN",
			},
			{
				name: "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and CAP_SYS_ADMIN", user: true, capabilities: administers, paranoid: debiansParanoid,
				traces: true, kernel: "fentry", status: statusOK,
			},
		}...)
	}
	return append(list, rights{name: "root without type information", hidden: true, paranoid: debiansParanoid, status: statusPermanent, says: "its own type information"})
}

// doesWhatItCan runs the collector with less than it takes, one right after the
// other: it exports what it can see, and says in one status what it cannot.
func doesWhatItCan(ctx context.Context, g *Guest) (_ string, err error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	manyAtOnce, err := kernelSince(6, 6)
	if err != nil {
		return "", err
	}
	paranoid, err := os.ReadFile(paranoidFile)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(paranoidFile, paranoid, 0o644)) }()
	var words []string
	for _, r := range allRights(manyAtOnce) {
		said, err := g.withRights(ctx, r)
		if err != nil {
			return "", fmt.Errorf("%s: %w", r.name, err)
		}
		words = append(words, r.name+": "+said)
	}
	return strings.Join(words, "; "), nil
}

// kernelSince tells whether the kernel is of a version or a later one.
func kernelSince(major, minor int) (bool, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false, err
	}
	release := unix.ByteSliceToString(name.Release[:])
	var x, y int
	if _, err := fmt.Sscanf(release, "%d.%d", &x, &y); err != nil {
		return false, fmt.Errorf("the kernel release %q: %w", release, err)
	}
	return x > major || x == major && y >= minor, nil
}

// withRights runs a collector and returns what it did and said.
func (g *Guest) withRights(ctx context.Context, r rights) (said string, err error) {
	if err := os.WriteFile(paranoidFile, []byte(strconv.Itoa(r.paranoid)), 0o644); err != nil {
		return "", err
	}
	c, err := g.launchWithRights(r)
	if err != nil {
		return "", err
	}
	g.collector = c
	if r.traces {
		said, err = g.tracesWith(ctx, c, r)
	} else {
		said, err = c.exportsPorts(ctx)
	}
	status, errStatus := c.reaches(ctx, r.status, r.says)
	if err := errors.Join(err, errStatus); err != nil {
		return "", fmt.Errorf("%w; the end of its output: %s", err, c.outputTail())
	}
	return said + ", " + status, g.stopCollector(ctx)
}

func (g *Guest) launchWithRights(r rights) (*collector, error) {
	var wrapper []string
	if r.hidden {
		wrapper = []string{"unshare", "--mount", "bash", "-c", `mount -t tmpfs "$0" /sys/kernel/btf && exec "$@"`, "no-types"}
	}
	if r.user {
		// Of a user with an ambient set the bounding set does not matter.
		wrapper = append(wrapper, "setpriv", "--reuid="+nobody, "--regid="+nobody, "--clear-groups")
		if len(r.capabilities) > 0 {
			set := "+" + strings.Join(r.capabilities, ",+")
			wrapper = append(wrapper, "--inh-caps="+set, "--ambient-caps="+set)
		}
	}
	return g.launchCollector(mode{name: r.name, runsOn: true}, wrapper, statusArguments)
}

const paranoidFile = "/proc/sys/kernel/perf_event_paranoid"

// nobody is the number of an unprivileged user and of its group.
const nobody = "65534"

// exportsPorts waits until the ports are exported, which takes no right.
func (c *collector) exportsPorts(ctx context.Context) (string, error) {
	var last error
	err := waitFor(ctx, collectorStart, "the ports are exported", func() (bool, error) {
		if exited, status := c.exited(); exited {
			return false, fmt.Errorf("the collector ended: %w", status)
		}
		_, err := c.metrics()
		last = c.portsAreUp()
		return last == nil, err
	})
	return "both ports exported", errors.Join(err, last)
}

// tracesWith lets processes and consumers in the kernel work, and holds what is
// counted of them against what they did.
func (g *Guest) tracesWith(ctx context.Context, c *collector, r rights) (string, error) {
	if err := c.awaitProbes(ctx, r.kernel); err != nil {
		return "", err
	}
	if err := c.mark(ctx, g.worked()); err != nil {
		return "", err
	}
	const messages, blocks = 100, 20
	client, server, err := g.startPingpong(ctx, messages)
	if err != nil {
		return "", err
	}
	if err := errors.Join(client.wait(ctx, 2*patience), server.wait(ctx, 2*patience)); err != nil {
		return "", err
	}
	if err := c.settles(ctx, []sum{
		{completionsOf("", clientDevice, "send"), messages},
		{completionsOf("", clientDevice, "recv"), messages},
		{completionsOf("", serverDevice, "send"), messages},
		{completionsOf("", serverDevice, "recv"), messages},
	}); err != nil {
		return "", err
	}
	inKernel, err := g.countsNVMe(ctx, c, r.kernel, blocks)
	return fmt.Sprintf("%d sends and receives of processes counted, %s", 2*messages, inKernel), errors.Join(err, c.balance(ctx))
}

// awaitProbes waits until the provider of the keeper is probed, and the driver in
// the kernel, where it has to be, by certain links.
func (c *collector) awaitProbes(ctx context.Context, links string) error {
	how := ""
	err := waitFor(ctx, collectorStart, "the collector probes rxe", func() (bool, error) {
		if exited, status := c.exited(); exited {
			return false, fmt.Errorf("the collector ended: %w", status)
		}
		telemetry, err := c.telemetry(ctx)
		if err != nil {
			return false, nil // not listening yet
		}
		var kernel bool
		how, kernel = probesKernelVerbs(telemetry)
		return pollMode(telemetry) != "" && (kernel || links == ""), nil
	})
	if err == nil && how != links {
		err = fmt.Errorf("the kernel's verbs are probed by %q, not %q", how, links)
	}
	return err
}

// countsNVMe does I/O and compares: every completion is counted where the kernel is
// probed, and none where it is not.
func (g *Guest) countsNVMe(ctx context.Context, c *collector, links string, blocks int) (string, error) {
	skippedBefore, err := c.lossesFor(ctx, entrySkipped, returnSkipped)
	if err != nil {
		return "", err
	}
	w, err := g.startCQWitness()
	if err != nil {
		return "", err
	}
	n, err := connectNVMe(ctx)
	switch {
	case err == nil && links == "kprobe":
		err = n.workWhileMapsAreBusy(ctx, blocks)
	case err == nil:
		err = n.work(ctx, blocks)
	}
	err = errors.Join(err, n.disconnect(ctx))
	polled, errWitness := w.stop()
	if err := errors.Join(err, errWitness); err != nil {
		return "", err
	}
	if links == "kprobe" {
		return c.countsSkipped(ctx, polled, skippedBefore)
	}
	if links != "" {
		return fmt.Sprintf("%d completions in the kernel by %s", polled, links), c.consumersSettle(ctx, polled, nvmeHost, nvmeTarget)
	}
	if err := c.collected(ctx, time.Now().Add(interval)); err != nil {
		return "", err
	}
	counted := c.total(completionsOfService(nvmeHost)) + c.total(completionsOfService(nvmeTarget))
	if counted != 0 {
		return "", fmt.Errorf("%.0f completions in the kernel, which has no probe", counted)
	}
	return fmt.Sprintf("none of %d completions in the kernel", polled), nil
}

// workWhileMapsAreBusy does I/O while kprobes are skipped for the sake of BPF maps.
func (n *nvmf) workWhileMapsAreBusy(ctx context.Context, blocks int) error {
	busy, err := keepMapsBusy()
	if err != nil {
		return err
	}
	return errors.Join(n.work(ctx, blocks), busy.end())
}

// mostPolled is how many completions the RDMA core polls in one call, IB_POLL_BATCH of
// drivers/infiniband/core/cq.c.
const mostPolled = 16

// countsSkipped waits until every completion that was polled is counted, or a skip of
// the kprobes is that explains it, from skippedBefore on: none runs too often. Some
// were skipped, as BPF maps were busy.
func (c *collector) countsSkipped(ctx context.Context, polled uint64, skippedBefore float64) (string, error) {
	var counted, skipped float64
	err := waitFor(ctx, patience, "each completion in the kernel is counted, or skipped", func() (bool, error) {
		_, err := c.metrics()
		counted = c.total(completionsOfService(nvmeHost)) + c.total(completionsOfService(nvmeTarget))
		now, errLosses := c.lossesFor(ctx, entrySkipped, returnSkipped)
		skipped = now - skippedBefore
		return counted > 0 && counted+mostPolled*skipped >= float64(polled), errors.Join(err, errLosses)
	})
	switch {
	case err == nil && counted > float64(polled):
		err = errors.New("more than were polled")
	case err == nil && skipped == 0:
		err = errors.New("no skip was counted, although BPF maps were busy")
	}
	said := fmt.Sprintf("%.0f of %d completions in the kernel by kprobe, %.0f runs skipped", counted, polled, skipped)
	if err != nil {
		return "", fmt.Errorf("%s: %w", said, err)
	}
	return said, nil
}

// reaches waits until the status of the component is one, and says something.
func (c *collector) reaches(ctx context.Context, status, says string) (string, error) {
	var now componentStatus
	var last error
	err := waitFor(ctx, patience, "the status is "+status+": "+says, func() (bool, error) {
		now, last = readStatus(ctx)
		return last == nil && now.Status == status && strings.Contains(now.Error, says), nil
	})
	if err != nil {
		return "", errors.Join(fmt.Errorf("%w; it is %q: %s", err, now.Status, now.Error), last)
	}
	if strings.Contains(now.Error, "\n") {
		return "", fmt.Errorf("the status is more than a line: %q", now.Error)
	}
	if says == "" {
		return status, nil
	}
	return status + " (" + now.Error + ")", nil
}
