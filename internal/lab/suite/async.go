package suite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

// eventDeadline is how soon an asynchronous event has to be exported.
const eventDeadline = time.Second

// awaitEvent waits for an asynchronous event and returns it with how long after
// the beginning it came out.
func (c *collector) awaitEvent(ctx context.Context, begin time.Time, match func(otlp.Record) bool) (otlp.Record, time.Duration, error) {
	var found otlp.Record
	err := waitFor(ctx, patience, "the asynchronous event is exported", func() (bool, error) {
		err := c.readRecords()
		for _, r := range c.records {
			if r.Event == "rdma.async_event" && !r.Time.Before(begin) && match(r) {
				found = r
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		err = fmt.Errorf("%w; records: %v", err, c.records)
	}
	return found, time.Since(begin), err
}

func isPortEvent(kind, device string) func(otlp.Record) bool {
	return func(r otlp.Record) bool {
		a := r.Attributes
		return a["rdma.async_event.type"] == kind && a["rdma.device.name"] == device && a["rdma.device.port"] == "1"
	}
}

// portEventsAreTold takes the interface of the client's device down and up.
func portEventsAreTold(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	var text string
	note, err := prompt(eventDeadline, func() (took time.Duration, err error) {
		text, took, err = c.togglePort(ctx)
		return took, errors.Join(err, wire.Veth().Restore(ctx))
	})
	return text + note, err
}

// togglePort takes the port down and up, and returns the longer time until either
// event was exported.
func (c *collector) togglePort(ctx context.Context) (text string, longest time.Duration, err error) {
	var words []string
	for _, step := range []struct {
		up    bool
		event string
	}{{false, "port_error"}, {true, "port_active"}} {
		begin := time.Now()
		if err := wire.SetInterface(clientNetdev, step.up); err != nil {
			return "", 0, err
		}
		r, took, err := c.awaitEvent(ctx, begin, isPortEvent(step.event, clientDevice))
		if err != nil {
			return "", 0, err
		}
		longest = max(longest, took)
		words = append(words, fmt.Sprintf("%s happened after %s and was read after %s", step.event,
			r.Time.Sub(begin).Round(time.Millisecond), took.Round(time.Millisecond)))
	}
	return strings.Join(words, "; "), longest, nil
}

// overrunIsTold lets the CQ of a process overrun.
func overrunIsTold(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	p, err := g.start("overrun", g.share+"/overrun", clientDevice, fmt.Sprint(gidIndex))
	if err != nil {
		return "", err
	}
	r, took, err := c.awaitEvent(ctx, begin, func(r otlp.Record) bool { return r.Attributes["rdma.async_event.type"] == "cq_error" })
	if err != nil {
		return "", fmt.Errorf("%w; the program: %s", err, p.outputTail())
	}
	cqs, err := resourcesOf(ctx, "cq", p.pid())
	if err != nil {
		return "", err
	}
	numbers := cqNumbers(cqs)
	if len(numbers) != 1 {
		return "", fmt.Errorf("process %d has CQs %d: %s", p.pid(), numbers, p.outputTail())
	}
	for key, want := range map[string]string{
		"rdma.cq.number": strconv.Itoa(numbers[0]), "process.pid": strconv.Itoa(p.pid()), "rdma.device.name": clientDevice,
	} {
		if r.Attributes[key] != want {
			return "", fmt.Errorf("%s is %q, want %q: %v", key, r.Attributes[key], want, r.Attributes)
		}
	}
	if r.Service != "overrun" {
		return "", fmt.Errorf("the event is of service %q", r.Service)
	}
	return fmt.Sprintf("CQ %d of process %d overran, told within %s of its start", numbers[0], p.pid(), took.Round(time.Millisecond)), nil
}
