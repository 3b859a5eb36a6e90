package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/text"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// Collector is one that may run on the machine.
type Collector interface {
	View(context.Context) (radar.View, error)
	// Tracing is that of a view, which may be large.
	Tracing(context.Context) (radar.Tracing, error)
	// PID is its process after a view, 0 when it is not known.
	PID() int
}

// System is the machine that is looked at.
type System struct {
	// root is where its root directory is.
	root      string
	collector Collector
	// tries, reads and clock ask the kernel.
	tries func(context.Context) (tracer.Trial, error)
	clock func() (clockFacts, error)
	// held says whether the kernel holds a thread of this process.
	held   func() bool
	fabric *fabric.Reader
	finder *provider.Finder
	// inventory and view are asked for once, by the first check that needs them.
	inventory func() (inventory, error)
	view      func() (radar.View, error)
	processes func() (processes, error)
}

// inventory is what the machine has.
type inventory struct {
	devices []fabric.DeviceDetail
	gpus    []fabric.PCIDevice
}

// New returns the machine that this runs on. What the checks ask the collector ends with
// the context.
func New(ctx context.Context, collector Collector) *System {
	s := &System{
		root: "/", collector: collector,
		tries: func(ctx context.Context) (tracer.Trial, error) { return tracer.Try(ctx, tracer.Config{}) },
		clock: readClock, held: func() bool { return IsHeld(os.Getpid()) }, fabric: fabric.NewReader(""), finder: provider.NewFinder(""),
	}
	s.share(ctx)
	return s
}

// share makes what several checks need once.
func (s *System) share(ctx context.Context) {
	s.inventory = sync.OnceValues(s.readInventory)
	s.view = sync.OnceValues(func() (radar.View, error) { return s.collector.View(ctx) })
	s.processes = sync.OnceValues(func() (processes, error) { return readProcesses(s.root) })
}

// Checks are all of them.
func (s *System) Checks() []Check {
	return []Check{
		{"kernel", s.checkKernel},
		{"capabilities", s.checkCapabilities},
		{"restrictions", s.checkRestrictions},
		{"collector", s.checkCollector},
		{"tracing", s.checkTracing},
		{"libraries", s.checkLibraries},
		{devicesName, s.checkDevices},
		{pcieName, s.checkPCIe},
		{"numa", s.checkNUMA},
		{"processes", s.checkProcesses},
		{"clock", s.checkClock},
	}
}

// Diagnose runs all checks.
func (s *System) Diagnose(ctx context.Context) Report {
	report := Run(ctx, s.Checks())
	report.Host = s.line("proc/sys/kernel/hostname")
	report.Kernel = strings.TrimSpace(s.release() + " " + runtime.GOARCH)
	return report
}

// readInventory reads what is cheap to read: not the addresses of ports, of which there
// are thousands.
func (s *System) readInventory() (inventory, error) {
	devices, err := s.fabric.Devices()
	if err != nil {
		err = fmt.Errorf("read the RDMA devices: %w", err)
	}
	gpus, gpuErr := s.fabric.GPUs()
	all := inventory{gpus: gpus}
	for _, device := range devices {
		detail := fabric.DeviceDetail{Device: device}
		if pci, pciErr := s.fabric.PCI(device.PCIAddress); pciErr == nil {
			detail.PCI = &pci
		}
		all.devices = append(all.devices, detail)
	}
	if err == nil {
		err = gpuErr
	}
	return all, err
}

// release is that of the kernel, "" when it cannot be read.
func (s *System) release() string { return s.line("proc/sys/kernel/osrelease") }

// line is the first line of a small file, "" when it cannot be read.
func (s *System) line(name string) string {
	content, err := os.ReadFile(filepath.Join(s.root, name))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return text.Clean(line, maxText)
}

// number is a file with a number, nil when there is none.
func (s *System) number(name string) *int {
	n, err := strconv.Atoi(s.line(name))
	if err != nil {
		return nil
	}
	return &n
}

func (s *System) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.root, name))
	return err == nil
}

// asked is nil where no collector answers.
func (s *System) asked() *radar.View {
	view, err := s.view()
	if err != nil {
		return nil
	}
	return &view
}

// unreadable says that something could not be looked at.
func unreadable(err error) Finding { return Finding{Level: Unknown, What: err.Error()} }
