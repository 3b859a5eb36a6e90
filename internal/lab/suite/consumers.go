package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// probesKernelVerbs reports whether the driver of the devices is probed for
// consumers in the kernel, and how.
func probesKernelVerbs(telemetry otlp.Metrics) (how string, ok bool) {
	for _, p := range telemetry.Select(otlp.Match{Metric: "otelcol_rdma_probes", Attributes: map[string]string{"mode": "kernel", "provider": "rdma_rxe"}}) {
		if p.Value > 0 {
			return p.Attributes["link"], true
		}
	}
	return "", false
}

// nvmeIsSeen does I/O on an NVMe over Fabrics device while processes use the same
// RDMA devices: both ends are seen as consumers in the kernel, with as many
// completions as the RDMA core polled, and the processes' work is counted once.
func nvmeIsSeen(ctx context.Context, g *Guest) (said string, err error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	// Every request has to wait for the wire, and for nothing else as long.
	if err := impair(ctx, "delay 10ms"); err != nil {
		return "", err
	}
	w, err := g.startCQWitness()
	if err != nil {
		return "", err
	}
	const blocks = 150
	r := perftest.Run{Tool: perftest.WriteBandwidth, Iterations: 300, Size: 4096}
	n, err := connectNVMe(ctx)
	if err == nil {
		err = n.workBeside(ctx, g, blocks, r)
	}
	err = errors.Join(err, n.disconnect(ctx))
	polled, errWitness := w.stop()
	if err := errors.Join(err, errWitness); err != nil {
		return "", err
	}
	if err := c.consumersSettle(ctx, polled, nvmeHost, nvmeTarget); err != nil {
		return "", err
	}
	if _, err := c.reconciles(ctx, r); err != nil {
		return "", err
	}
	return c.describeConsumers(ctx, polled, 2*blocks, nvmeHost, nvmeTarget)
}

// workBeside does I/O before, while and after a perftest pair runs.
func (n *nvmf) workBeside(ctx context.Context, g *Guest, blocks int, r perftest.Run) error {
	if err := n.work(ctx, blocks/3); err != nil {
		return err
	}
	p, err := g.startPair(ctx, r)
	if err != nil {
		return err
	}
	err = n.work(ctx, blocks/3)
	if _, errPair := p.wait(ctx, 2*patience); errPair != nil {
		return errors.Join(err, errPair)
	}
	return errors.Join(err, n.work(ctx, blocks-2*(blocks/3)))
}

func completionsOfService(service string) otlp.Match {
	return otlp.Match{Service: service, Metric: "rdma.wqe.completions"}
}

// consumersSettle waits until services in the kernel together have as many
// completions as were polled, and stay there.
func (c *collector) consumersSettle(ctx context.Context, polled uint64, services ...string) error {
	counted := func() (total float64) {
		for _, s := range services {
			total += c.total(completionsOfService(s))
		}
		return total
	}
	err := waitFor(ctx, patience, fmt.Sprintf("the completions of %v are all there", services), func() (bool, error) {
		_, err := c.metrics()
		return counted() >= float64(polled), err
	})
	if err != nil {
		return fmt.Errorf("%w: %.0f of %d", err, counted(), polled)
	}
	if err := c.collected(ctx, c.newest()); err != nil {
		return err
	}
	if got := counted(); got != float64(polled) {
		return fmt.Errorf("%.0f completions of %v, polled were %d", got, services, polled)
	}
	return nil
}

// entrySkipped and returnSkipped are the reasons of losses for which a program at the
// entry of a verb in the kernel did not run, or one at its return.
const entrySkipped, returnSkipped = "kernel_entry_skipped", "kernel_return_skipped"

// lossesFor returns how many losses the collector has counted for any of the reasons.
func (c *collector) lossesFor(ctx context.Context, reasons ...string) (total float64, err error) {
	telemetry, err := c.telemetry(ctx)
	for _, reason := range reasons {
		total += telemetry.Total(otlp.Match{Metric: "otelcol_rdma_losses", Attributes: map[string]string{"reason": reason}})
	}
	return total, err
}

// waitsForDevice returns which share of the time of a service's requests was in
// the device, where it has to be while the wire is slow: the interrupt tells when
// a completion was there, and the poll follows it.
func (c *collector) waitsForDevice(service string) (float64, error) {
	of := func(stage string) float64 {
		m := otlp.Match{Service: service, Metric: "rdma.wqe.stage.time"}
		if stage != "" {
			m.Attributes = map[string]string{"rdma.wqe.stage": stage}
		}
		return c.total(m)
	}
	share := of("device") / of("")
	if !(share > 0.5) {
		return share, fmt.Errorf("of %.3f s that requests of %s took, %.3f s were in the device, %.3f s in poll, %.3f s in completion, %.3f s in queue",
			of(""), service, of("device"), of("poll"), of("completion"), of("queue"))
	}
	return share, nil
}

// describeConsumers checks that each service has completed a send for each I/O, that
// some were timed, and says what was lost.
func (c *collector) describeConsumers(ctx context.Context, polled uint64, ios float64, services ...string) (string, error) {
	words := fmt.Sprintf("%d completions, as the RDMA core polled", polled)
	for _, service := range services {
		sends := c.total(completionsOfService(service)) - c.total(otlp.Match{
			Service: service, Metric: "rdma.wqe.completions", Attributes: map[string]string{"rdma.operation.name": "recv"},
		})
		h := c.histogram(otlp.Match{Service: service, Metric: "rdma.wqe.duration"})
		if sends < ios || h.Count == 0 {
			return "", fmt.Errorf("%s completed %.0f sends for %.0f requests, and %d were timed", service, sends, ios, h.Count)
		}
		device, err := c.waitsForDevice(service)
		if err != nil {
			return "", err
		}
		words += fmt.Sprintf("; %s: %.0f sends, %d timed, %.0f %% of the time in the device", service, sends, h.Count, 100*device)
	}
	telemetry, err := c.telemetry(ctx)
	if err != nil {
		return "", err
	}
	how, _ := probesKernelVerbs(telemetry)
	words += "; by " + how
	for _, reason := range []string{entrySkipped, returnSkipped, "entry_not_seen"} {
		n := telemetry.Total(otlp.Match{Metric: "otelcol_rdma_losses", Attributes: map[string]string{"reason": reason}})
		words += fmt.Sprintf("; %s %.0f", reason, n)
	}
	return words, nil
}
