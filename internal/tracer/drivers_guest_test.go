//go:build guest

package tracer_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// A driver that is not known by name is found by the functions that its first
// device has. It runs in a virtual machine: it loads a module and adds a device.
func TestDriversAreFoundByTheirDevices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("it loads modules, and must run as root in a virtual machine")
	}
	tr, err := tracer.Start(t.Context(), tracer.DriversByDevice(tracer.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	command(t, "modprobe", "rdma_rxe")
	command(t, "ip", "link", "add", "drivers0", "type", "veth", "peer", "drivers1")
	t.Cleanup(func() { command(t, "ip", "link", "delete", "drivers0") })
	command(t, "rdma", "link", "add", "rxedrivers", "type", "rxe", "netdev", "drivers0")
	t.Cleanup(func() { command(t, "rdma", "link", "delete", "rxedrivers") })
	await(t, "soft-RoCE is probed", func() error {
		got, want := tracer.DriverFunctions(tr, "rdma_rxe"), tracer.NamedFunctions("rdma_rxe")
		if len(want) == 0 || !slices.Equal(got, want) {
			return fmt.Errorf("probed are %q, it has %q", got, want)
		}
		return nil
	})
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, output)
	}
}

func await(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
