package tracer

import (
	"errors"
	"log/slog"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/baseline"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Config says what to trace. The zero value of an optional field has a
// meaning; see each.
type Config struct {
	// Threshold is the excess time from which a completion is slow, unless as much
	// is usual for its kind: its duration less the time the port was busy. 0 reports
	// every completion.
	Threshold time.Duration
	// MaxMapBytes bounds the memory of the BPF maps. 0 means 32 MiB.
	MaxMapBytes uint64
	// Root is the root directory of the host, "/" or where a container has
	// it mounted. "" means "/".
	Root string
	// CacheDirectory keeps what was found out about libraries for the next
	// start. It is made if there is none. "" keeps nothing.
	CacheDirectory string
	// TakesProcess and TakesDevice select what is traced; nil takes all. They
	// must not wait for a process or device.
	TakesProcess func(pid int) bool
	TakesDevice  func(name string) bool
	// TakesConsumer selects the consumers in the kernel that are traced, by the
	// name of their module; nil takes all.
	TakesConsumer func(module string) bool
	// NewProcess is told of every process when it has its first queue, so that
	// what is to be known of it can be read while it lives, and its comm, which
	// is "" where that is not known. It must not block. nil tells nobody.
	NewProcess func(id verbs.ProcessID, name string)
	// Rate returns what a device carries in one direction, in bytes per
	// second, false when it is not known; nil knows none. It is asked again
	// every few seconds and may wait: nothing waits for it, not even Close.
	Rate func(device string) (float64, bool)
	// Logger gets what an operator should know. nil discards it.
	Logger *slog.Logger
	// EventBytes is the size of the ring buffer for slow completions, a power
	// of two. 0 means 1 MiB.
	EventBytes uint32
	// EntryReturn observes posts and poll_cq by their entries and returns alone,
	// which traps on every empty poll: the rung windows of the ladder is the highest.
	EntryReturn bool
	// MaxThreadCPURatio is the part of a traced thread's time that probes may
	// take, and MaxAgentCPUCores the CPU time per second of the tracer itself. A
	// library over one of them is observed in windows. 0 sets no bound, nor does
	// the whole of a thread.
	MaxThreadCPURatio, MaxAgentCPUCores float64
	// CQETimestamps reads the time stamps that devices of mlx5 write into the
	// entries of CQs. Once a device's clock is calibrated, they tell when a slow
	// completion was written. It is experimental: it has not been run on hardware.
	CQETimestamps bool
	// takesFile selects the files that are looked at; nil takes all. It lets
	// tests look at their own alone.
	takesFile func(path string) bool
	// evidenceEvery is evidenceEvery of evidence.go when it is 0. It lets tests
	// have more of it.
	evidenceEvery time.Duration
	// interruptsTime is interruptsTime of interrupts.go when it is 0. It lets tests
	// see an end of it.
	interruptsTime time.Duration
	// devicesUnused and devicesRetired are deviceUnused and deviceRetired of
	// devicerest.go when they are 0. They let tests see an end of them.
	devicesUnused, devicesRetired time.Duration
	// namedDrivers is knownDrivers when it is nil. It lets tests find drivers by
	// their devices alone.
	namedDrivers []driver
	// learningWindow is baseline.Window when it is 0. It lets tests learn sooner.
	learningWindow time.Duration
	// selects says that not every process is traced.
	selects bool
}

const (
	defaultMapBytes   = 32 << 20
	defaultEventBytes = 1 << 20
)

func (c Config) withDefaults() (Config, error) {
	if c.MaxMapBytes == 0 {
		c.MaxMapBytes = defaultMapBytes
	}
	if c.EventBytes == 0 {
		c.EventBytes = defaultEventBytes
	}
	if c.EventBytes&(c.EventBytes-1) != 0 || c.EventBytes < 4096 {
		return c, errors.New("tracer: EventBytes must be a power of two of at least 4096")
	}
	if c.Threshold < 0 {
		return c, errors.New("tracer: Threshold must not be negative")
	}
	if c.MaxThreadCPURatio < 0 || c.MaxAgentCPUCores < 0 {
		return c, errors.New("tracer: MaxThreadCPURatio and MaxAgentCPUCores must not be negative")
	}
	if c.MaxThreadCPURatio >= 1 {
		c.MaxThreadCPURatio = 0
	}
	if c.evidenceEvery == 0 {
		c.evidenceEvery = evidenceEvery
	}
	if c.interruptsTime == 0 {
		c.interruptsTime = interruptsTime
	}
	if c.devicesUnused == 0 {
		c.devicesUnused = deviceUnused
	}
	if c.devicesRetired == 0 {
		c.devicesRetired = deviceRetired
	}
	if c.learningWindow == 0 {
		c.learningWindow = baseline.Window
	}
	if c.namedDrivers == nil {
		c.namedDrivers = knownDrivers
	}
	if c.Root == "" {
		c.Root = "/"
	}
	c.selects = c.TakesProcess != nil || c.TakesConsumer != nil
	if c.TakesProcess == nil {
		c.TakesProcess = func(int) bool { return true }
	}
	if c.TakesConsumer == nil {
		c.TakesConsumer = func(string) bool { return true }
	}
	if c.TakesDevice == nil {
		c.TakesDevice = func(string) bool { return true }
	}
	if c.takesFile == nil {
		c.takesFile = func(string) bool { return true }
	}
	if c.NewProcess == nil {
		c.NewProcess = func(verbs.ProcessID, string) {}
	}
	if c.Rate == nil {
		c.Rate = func(string) (float64, bool) { return 0, false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
