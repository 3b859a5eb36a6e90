//go:build guest

package tracer_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// The kinds of requests on soft-RoCE are followed apart by their peer, which the
// kernel told of. It runs in a virtual machine: it loads a module and adds a device.
func TestKindsHaveTheirPeer(t *testing.T) {
	command(t, "modprobe", "-a", "ib_uverbs", "rdma_rxe", "veth")
	command(t, "ip", "link", "add", "peers0", "type", "veth", "peer", "peers1")
	t.Cleanup(func() { command(t, "ip", "link", "delete", "peers0") })
	command(t, "ip", "address", "add", "10.77.0.1/24", "dev", "peers0")
	command(t, "ip", "link", "set", "peers0", "up")
	command(t, "ip", "link", "set", "peers1", "up")
	command(t, "rdma", "link", "add", "rxepeers", "type", "rxe", "netdev", "peers0")
	t.Cleanup(func() { command(t, "rdma", "link", "delete", "rxepeers") })
	tr, err := tracer.Start(t.Context(), tracer.Config{Threshold: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	// Longer than two scans, between which the peers are looked for.
	perftest := []string{"-d", "rxepeers", "-x", "1", "-F", "-s", "64", "-D", "5", "-p", "18577"}
	server := exec.Command("ib_write_lat", perftest...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	await(t, "perftest runs", func() error {
		output, err := exec.Command("ib_write_lat", append(perftest, "10.77.0.1")...).CombinedOutput()
		if err != nil {
			t.Logf("%s", output)
		}
		return err
	})
	await(t, "kinds have a peer", func() error {
		for kind, requests := range tracer.Kinds(tr) {
			t.Logf("%+v: %d requests", kind, requests)
			if kind.Peer != 0 && kind.Operation == "rdma_write" && kind.SizeClass == 4 && requests > 100 {
				return nil
			}
		}
		return errors.New("no write of 64 bytes has one")
	})
}
