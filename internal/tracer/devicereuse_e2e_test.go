//go:build e2e

package tracer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Devices come and go for as long as a node runs: the index of one that is gone is
// another one's, and none has the counts of another.

const soon = 50 * time.Millisecond

func TestDeviceIndexesAreUsedAgain(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.WithDevicesResting(everything, soon, soon))
	const indexes = 1
	if err := tracer.LeaveDevices(tr, indexes); err != nil {
		t.Fatal(err)
	}
	collected := collect(tr)
	told := 0
	for i := range 2*indexes + 1 {
		device := fmt.Sprintf("passing%d", i)
		r := followWith(t, tr, collected, "rate", "--requests", "200", "--rate", "2000", "--device", device)
		r.checkBooks()
		if r.matched() == 0 || r.lost("device_map_full") > 0 {
			t.Fatalf("%s: %d timed, without an index: %d", device, r.matched(), r.lost("device_map_full"))
		}
		r.series(func(s *verbs.Series) {
			if s.Key.Device != device {
				t.Errorf("the device of %s is %q", device, s.Key.Device)
			}
		})
		for ; told < len(r.seen); told++ {
			if got := r.seen[told].Device; got != device {
				t.Fatalf("a completion on %s is told to be on %q", device, got)
			}
		}
		gone := untilFree(t, tr, indexes)
		if !slices.Equal(gone, []string{device}) {
			t.Errorf("%v are told to be gone, not %s", gone, device)
		}
	}
}

// A program may count on a device that it found just before that was given up: it is
// told once, and the device to be gone again.
func TestWhatIsCountedOnADeviceThatIsGoneIsToldOnce(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.WithDevicesResting(everything, soon, soon))
	if err := tracer.LeaveDevices(tr, 1); err != nil {
		t.Fatal(err)
	}
	const device = "passing"
	followWith(t, tr, collect(tr), "rate", "--requests", "200", "--rate", "2000", "--device", device)
	for deadline := time.Now().Add(20 * time.Second); !slices.Contains(snapshot(t, tr).GoneDevices, device); time.Sleep(soon) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not given up", device)
		}
	}
	if err := tracer.CountLate(tr, device, 7); err != nil {
		t.Fatal(err)
	}
	time.Sleep(soon)
	last := snapshot(t, tr)
	if n := completionsOn(&last, device); n != 7 || !slices.Contains(last.GoneDevices, device) {
		t.Errorf("%d are told, want 7; %v are gone", n, last.GoneDevices)
	}
	if gone := untilFree(t, tr, 1); len(gone) > 0 {
		t.Errorf("%v are told to be gone once more", gone)
	}
	if last = snapshot(t, tr); completionsOn(&last, device) > 0 {
		t.Errorf("what was counted late is told again")
	}
}

func completionsOn(s *verbs.Snapshot, device string) (n uint64) {
	for i := range s.Series {
		if s.Series[i].Key.Device == device {
			n += s.Series[i].Completions
		}
	}
	return n
}

// untilFree takes snapshots until so many indexes are free, and returns the devices
// that they tell to be gone.
func untilFree(t *testing.T, tr *tracer.Tracer, indexes int) (gone []string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		gone = append(gone, snapshot(t, tr).GoneDevices...)
		free, err := tracer.FreeDevices(tr)
		if err != nil {
			t.Fatal(err)
		}
		if free == indexes {
			return gone
		}
		if time.Now().After(deadline) {
			t.Fatalf("of %d indexes %d are free, in use are %v", indexes, free, tracer.DeviceNames(tr))
		}
		time.Sleep(soon)
	}
}

// All devices of sysfs go, and as many others come.
func TestIndexesOfSysfsAreUsedAgain(t *testing.T) {
	beside(t)
	root := t.TempDir()
	if err := os.Symlink("/proc", filepath.Join(root, "proc")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "sys/class/infiniband")
	cfg := tracer.WithDevicesResting(everything, soon, soon)
	cfg.Root = root
	tr := startTracer(t, cfg)
	const all = 64
	for generation := range 3 {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range all {
			name := fmt.Sprintf("vf%d_%02d", generation, i)
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			want = append(want, name)
		}
		deadline := time.Now().Add(20 * time.Second)
		for {
			snapshot(t, tr)
			names := tracer.DeviceNames(tr)
			slices.Sort(names)
			if slices.Equal(names, want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("known are %v, in sysfs are %v", names, want)
			}
			time.Sleep(soon)
		}
	}
}
