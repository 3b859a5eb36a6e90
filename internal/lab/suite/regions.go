package suite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// What the program regions registers, see its source: so many regions of one
// unit, of two, and so on; the first few are released, and some fail.
const (
	regionsMade     = 12
	regionsReleased = 4
	regionsFailed   = 3
	regionUnit      = 16384
)

// regionsSaid is what the program prints.
type regionsSaid struct {
	// failed is the error of those that failed, dmabuf that of the dma-buf, 0 where
	// the device took it.
	failed, dmabuf syscall.Errno
	// registering and releasing are what the program waited.
	registering, releasing time.Duration
}

func parseRegions(output string) (said regionsSaid, err error) {
	var registering, releasing int64
	n, err := fmt.Sscanf(output, "failed %d dmabuf %d registered %d released %d", &said.failed, &said.dmabuf, &registering, &releasing)
	if n != 4 {
		return said, fmt.Errorf("regions printed %q: %w", output, err)
	}
	said.registering, said.releasing = time.Duration(registering), time.Duration(releasing)
	return said, nil
}

// startRegions starts the program and returns what it said.
func (g *Guest) startRegions(ctx context.Context) (*process, regionsSaid, error) {
	p, err := g.start("regions", g.share+"/regions", clientDevice)
	if err != nil {
		return nil, regionsSaid{}, err
	}
	var output string
	err = waitFor(ctx, patience, "regions has registered its memory", func() (bool, error) {
		if exited, status := p.exited(); exited {
			return false, fmt.Errorf("it ended (%v): %s", status, p.outputTail())
		}
		output, err = p.output()
		return strings.HasSuffix(output, "\n"), err
	})
	if err != nil {
		return nil, regionsSaid{}, err
	}
	said, err := parseRegions(output)
	return p, said, err
}

// regionMatch selects a metric of registrations. An attribute "" must be absent.
func regionMatch(metric, service, device, kind, errorType string) otlp.Match {
	return otlp.Match{Service: service, Metric: metric, Attributes: map[string]string{
		"rdma.device.name": device, "rdma.memory.kind": kind, "error.type": errorType,
	}}
}

// expectedRegions is what has to be counted of the program.
func expectedRegions(said regionsSaid) []sum {
	const made, gone = regionUnit * regionsMade * (regionsMade + 1) / 2, regionUnit * regionsReleased * (regionsReleased + 1) / 2
	of := func(metric, kind, errorType string) otlp.Match {
		return regionMatch(metric, "regions", clientDevice, kind, errorType)
	}
	expected := []sum{
		{of("rdma.mr.registrations", "host", ""), regionsMade},
		{of("rdma.mr.registrations", "host", unix.ErrnoName(said.failed)), regionsFailed},
		{of("rdma.mr.registration.size", "host", ""), made},
		{of("rdma.mr.regions", "host", ""), regionsMade - regionsReleased},
		{of("rdma.mr.registered", "host", ""), made - gone},
	}
	dmabuf, errorType := uint64(1), ""
	if said.dmabuf != 0 {
		dmabuf, errorType = 0, unix.ErrnoName(said.dmabuf)
	}
	return append(
		expected,
		sum{of("rdma.mr.registrations", "dmabuf", errorType), 1},
		sum{of("rdma.mr.registration.size", "dmabuf", ""), dmabuf * regionUnit},
		sum{of("rdma.mr.regions", "dmabuf", ""), dmabuf},
		sum{of("rdma.mr.registered", "dmabuf", ""), dmabuf * regionUnit},
	)
}

// registrationsAreCounted holds what is counted of a program that registers memory
// against what it did, and what lives against what the rdma tool prints.
func registrationsAreCounted(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	p, said, err := g.startRegions(ctx)
	if err != nil {
		return "", err
	}
	expected := expectedRegions(said)
	if err := c.settles(ctx, expected); err != nil {
		return "", err
	}
	live, err := c.liveRegions(ctx, p, "regions", clientDevice)
	if err != nil {
		return "", err
	}
	took, err := c.tookNoLonger(said)
	if err != nil {
		return "", err
	}
	p.kill()
	ended := []sum{
		{otlp.Match{Service: "regions", Metric: "rdma.mr.regions"}, 0},
		{otlp.Match{Service: "regions", Metric: "rdma.mr.registered"}, 0},
	}
	err = errors.Join(c.settlesLive(ctx, ended), c.nothingLost(ctx, "region"), c.nothingLost(ctx, "registration"))
	return fmt.Sprintf("%d registrations, %d failed (%v), dma-buf: %v; %s; %s", regionsMade, regionsFailed, said.failed, said.dmabuf, live, took), err
}

// tookNoLonger holds the times that were measured in the kernel against those that
// the program waited.
func (c *collector) tookNoLonger(said regionsSaid) (string, error) {
	registering := c.total(otlp.Match{Service: "regions", Metric: "rdma.mr.registration.time"})
	releasing := c.total(otlp.Match{Service: "regions", Metric: "rdma.mr.deregistration.time"})
	text := fmt.Sprintf("registering took %.6f s of %s, deregistering %.6f s of %s", registering, said.registering, releasing, said.releasing)
	if registering <= 0 || registering > said.registering.Seconds() || releasing <= 0 || releasing > said.releasing.Seconds() {
		return "", errors.New(text)
	}
	return text, nil
}

// liveRegions compares the regions that live with those that the rdma tool prints
// of a process, which has to be the only one of its service on the device.
func (c *collector) liveRegions(ctx context.Context, p *process, service, device string) (string, error) {
	all, err := resourcesOf(ctx, "mr", p.pid())
	if err != nil {
		return "", err
	}
	bytes := uint64(0)
	for _, r := range all {
		if r.Length == nil || r.Device != device {
			return "", fmt.Errorf("the rdma tool prints no length of a region of %s, or another device's: %+v", device, all)
		}
		bytes += *r.Length
	}
	of := map[string]string{"rdma.device.name": device}
	expected := []sum{
		{otlp.Match{Service: service, Metric: "rdma.mr.regions", Attributes: of}, uint64(len(all))},
		{otlp.Match{Service: service, Metric: "rdma.mr.registered", Attributes: of}, bytes},
	}
	if len(all) == 0 {
		return "", fmt.Errorf("the rdma tool prints no region of process %d", p.pid())
	}
	text := fmt.Sprintf("%d regions with %d bytes on %s, as the rdma tool prints them", len(all), bytes, device)
	return text, c.settlesLive(ctx, expected)
}

// settlesLive waits until values of the moment are as expected.
func (c *collector) settlesLive(ctx context.Context, expected []sum) error {
	err := waitFor(ctx, patience, "the exported values are as expected", func() (bool, error) {
		_, err := c.metrics()
		return err == nil && differences(c.all.Total, expected) == nil, err
	})
	return errors.Join(err, differences(c.all.Total, expected))
}

// nothingLost fails when anything was lost for a reason with that beginning.
func (c *collector) nothingLost(ctx context.Context, prefix string) error {
	telemetry, err := c.telemetry(ctx)
	if err != nil {
		return err
	}
	seen := false
	for _, p := range telemetry.Select(otlp.Match{Metric: "otelcol_rdma_losses"}) {
		if !strings.HasPrefix(p.Attributes["reason"], prefix) {
			continue
		}
		seen = true
		if p.Value != 0 {
			return fmt.Errorf("lost %.0f: %s", p.Value, p.Attributes["reason"])
		}
	}
	if !seen {
		return fmt.Errorf("no loss %s… is counted", prefix)
	}
	return nil
}

// memoryIsHost waits for slow spans of a process, whose requests all have to be of
// host memory.
func (c *collector) memoryIsHost(ctx context.Context, pid int) (string, error) {
	seen := 0
	err := waitFor(ctx, patience, "there are spans of the process", func() (bool, error) {
		spans, err := c.spans()
		seen = 0
		for _, s := range spans {
			if s.Attributes["process.pid"] != strconv.Itoa(pid) {
				continue
			}
			seen++
			if kind := s.Attributes["rdma.memory.kind"]; kind != "host" {
				return false, fmt.Errorf("the memory of %s is %q: %v", s.Name, kind, s.Attributes)
			}
		}
		return seen > 0, err
	})
	return fmt.Sprintf("%d spans of host memory", seen), err
}

// registeredIsTheKernels compares both ends of a connection while it is busy, and
// slow.
func registeredIsTheKernels(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+injected.String()); err != nil {
		return "", err
	}
	run := perftest.Run{Tool: perftest.SendBandwidth, Iterations: endless, Size: 512}
	p, err := g.startPair(ctx, run, "nice", "-n", "19")
	if err != nil {
		return "", err
	}
	if _, err := endOf(ctx, p.client, clientDevice, clientAddress); err != nil {
		return "", err
	}
	here, errHere := c.liveRegions(ctx, p.client, string(run.Tool), clientDevice)
	there, errThere := c.liveRegions(ctx, p.server, string(run.Tool), serverDevice)
	memory, errMemory := c.memoryIsHost(ctx, p.client.pid())
	return here + "; " + there + "; " + memory, errors.Join(errHere, errThere, errMemory)
}
