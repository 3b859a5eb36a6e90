package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// portCounters holds the exported packets of both ports against what the driver
// counted meanwhile, exactly, and the state of the ports against the link.
func portCounters(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	before, err := driverPackets()
	if err != nil {
		return "", err
	}
	p, err := g.startPair(ctx, perftest.Run{Tool: perftest.WriteBandwidth, Iterations: 500, Size: 4096})
	if err != nil {
		return "", err
	}
	if _, err := p.wait(ctx, 2*patience); err != nil {
		return "", err
	}
	var last error
	err = waitFor(ctx, patience, "the exported packets are those of the driver", func() (bool, error) {
		after, err := driverPackets()
		if err != nil {
			return false, err
		}
		if _, err := c.metrics(); err != nil {
			return false, err
		}
		last = c.samePackets(before, after)
		return last == nil, nil
	})
	if err := errors.Join(err, last, c.portsAreUp()); err != nil {
		return "", err
	}
	return c.describePackets(), nil
}

// port is a device and a direction of its traffic.
type port struct{ device, direction string }

// packetFiles are the driver's counters: hw_counters of rxe.
func packetFiles() map[port]string {
	files := map[port]string{}
	for _, device := range []string{clientDevice, serverDevice} {
		directory := filepath.Join("/sys/class/infiniband", device, "ports/1/hw_counters")
		files[port{device, "transmit"}] = filepath.Join(directory, "sent_pkts")
		files[port{device, "receive"}] = filepath.Join(directory, "rcvd_pkts")
	}
	return files
}

func driverPackets() (map[port]uint64, error) {
	counts := map[port]uint64{}
	for port, file := range packetFiles() {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if counts[port], err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return counts, nil
}

func (p port) match() otlp.Match {
	return otlp.Match{Service: "otelcol-rdma", Metric: "rdma.port.packets", Attributes: map[string]string{
		"rdma.device.name": p.device, "rdma.device.port": "1", "network.io.direction": p.direction,
	}}
}

func (c *collector) samePackets(before, after map[port]uint64) error {
	var failed []error
	for port, count := range after {
		want, got := count-before[port], c.total(port.match())
		if want == 0 || got != float64(want) {
			failed = append(failed, fmt.Errorf("%s %s: %.0f packets exported, %d counted by the driver", port.device, port.direction, got, want))
		}
	}
	return errors.Join(failed...)
}

func (c *collector) describePackets() string {
	sent := c.total(port{clientDevice, "transmit"}.match())
	received := c.total(port{serverDevice, "receive"}.match())
	return fmt.Sprintf("%s sent %.0f packets and %s received %.0f, as the driver counted", clientDevice, sent, serverDevice, received)
}

func (c *collector) portsAreUp() error {
	up := otlp.Match{Service: "otelcol-rdma", Metric: "rdma.port.up", Attributes: map[string]string{
		"rdma.port.state": "ACTIVE", "rdma.port.link_layer": "Ethernet",
	}}
	if n := c.all.Total(up); n != 2 {
		return fmt.Errorf("%.0f of 2 ports are exported as up", n)
	}
	return nil
}
