package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// hardwareDrivers are loaded without their hardware. Not every kernel has the
// last one.
var hardwareDrivers = []string{"mlx5_ib", "irdma", "bnxt_re"}

// driversAreProbed loads drivers of hardware under a running collector, which
// probes the verbs of each as it comes. Nothing can reach the probes.
func driversAreProbed(ctx context.Context, g *Guest) (said string, err error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	var loaded []string
	for _, module := range hardwareDrivers {
		if _, err := run(ctx, "modinfo", module); err == nil {
			loaded = append(loaded, module)
		}
	}
	if len(loaded) < 2 {
		return "", fmt.Errorf("this kernel has of %v only %v", hardwareDrivers, loaded)
	}
	if _, err := run(ctx, append([]string{"modprobe", "-a"}, loaded...)...); err != nil {
		return "", err
	}
	said, err = c.probesDrivers(ctx, loaded)
	// With fentry on it a module cannot be unloaded.
	errStop := g.stopCollector(ctx)
	_, errUnload := run(ctx, append([]string{"modprobe", "-r", "-a"}, loaded...)...)
	return said, errors.Join(err, errStop, errUnload)
}

// probesDrivers waits until the verbs of all drivers are probed.
func (c *collector) probesDrivers(ctx context.Context, modules []string) (said string, err error) {
	err = waitFor(ctx, collectorStart, fmt.Sprintf("%v are probed", modules), func() (bool, error) {
		telemetry, err := c.telemetry(ctx)
		if err != nil {
			return false, err
		}
		var words []string
		for _, m := range modules {
			points := telemetry.Select(otlp.Match{Metric: "otelcol_rdma_probes", Attributes: map[string]string{"mode": "kernel", "provider": m}})
			if len(points) == 0 {
				return false, nil
			}
			words = append(words, fmt.Sprintf("%d functions of %s by %s", len(points), m, points[0].Attributes["link"]))
		}
		said = strings.Join(words, ", ")
		return true, nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, c.outputTail())
	}
	return said, err
}

// TracerTests is the program, built from the tests of the tracer with the tag guest,
// of those that change the kernel they run on.
const TracerTests = "tracer.test"

// driversAreFound runs the tracer's own test of drivers that it does not know.
func driversAreFound(ctx context.Context, g *Guest) (string, error) {
	return "the verbs of rdma_rxe are found by its device as they are known by name",
		g.runTracerTest(ctx, "TestDriversAreFoundByTheirDevices")
}

// interruptsAreWatched runs the tracer's own test of programs that come and go.
func interruptsAreWatched(ctx context.Context, g *Guest) (string, error) {
	return "programs on interrupts come when something is slow and go again",
		g.runTracerTest(ctx, "TestInterruptsAreWatched")
}

// kindsHavePeers runs the tracer's own test of what is usual for each peer.
func kindsHavePeers(ctx context.Context, g *Guest) (string, error) {
	return "requests are followed apart by the peer that the kernel told of",
		g.runTracerTest(ctx, "TestKindsHaveTheirPeer")
}

// runTracerTest runs one of the tracer's tests that change the kernel they run on.
func (g *Guest) runTracerTest(ctx context.Context, name string) error {
	out, err := run(ctx, g.share+"/"+TracerTests, "-test.v", "-test.run", "^"+name+"$")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "--- PASS: "+name) {
		return fmt.Errorf("the test did not run: %s", out)
	}
	return nil
}
