package rdmareceiver

import (
	"context"
	"log/slog"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// engine is what the receiver needs of the tracer.
type engine interface {
	// Completions delivers slow or failed units of work. It is closed by Close.
	Completions() <-chan verbs.Completion
	// Stuck delivers sends that have been outstanding for more than a second,
	// each once. It is closed by Close.
	Stuck() <-chan verbs.Stuck
	// Async delivers asynchronous events of devices and of queues of traced
	// processes. It is closed by Close.
	Async() <-chan verbs.AsyncEvent
	// Snapshot returns the cumulative aggregates and the state of the queues.
	Snapshot() (verbs.Snapshot, error)
	// Glance returns the state of the queues and what is counted by process, at
	// most once a second, and changes nothing that Snapshot tells. The paths of
	// queues are there when paths is set.
	Glance(paths bool) (verbs.Snapshot, error)
	// Scheduling returns what the kernel did with a thread from a moment on until now;
	// ok is false of one that was not watched.
	Scheduling(tid uint32, since uint64) (s verbs.Scheduling, ok bool)
	// SetFloor keeps slow completions of the device with less excess time than
	// this from being delivered one by one. 0 delivers all of them.
	SetFloor(device string, excess time.Duration)
	// ConsumerName is the name of the module of a consumer in the kernel, "" when
	// it is not known.
	ConsumerName(id verbs.ProcessID) string
	// Impaired says what keeps the tracer from seeing every process, and what from
	// probing the RDMA core in the kernel; nil when nothing does.
	Impaired() error
	// Close detaches every probe. It may be called twice.
	Close() error
}

// engineConfig is what the tracer needs of the receiver.
type engineConfig struct {
	// Threshold is the excess time from which a completion is slow, unless as much
	// is usual for its kind.
	Threshold time.Duration
	// MaxMapBytes bounds the memory of the BPF maps.
	MaxMapBytes uint64
	// EntryReturn leaves completion sites alone.
	EntryReturn bool
	// CQETimestamps reads the time stamps that mlx5 devices write.
	CQETimestamps bool
	// MaxThreadCPURatio and MaxAgentCPUCores bound what observing costs.
	MaxThreadCPURatio, MaxAgentCPUCores float64
	// Root is the root directory of the host.
	Root string
	// CacheDirectory keeps what was found out about libraries, "" nothing.
	CacheDirectory string
	// NewProcess is told of every process while it lives, and what the kernel
	// calls it. It does not block.
	NewProcess func(id verbs.ProcessID, name string)
	// TakesProcess and TakesDevice select what is traced. nil takes all.
	TakesProcess func(pid int) bool
	TakesDevice  func(name string) bool
	// TakesConsumer selects the consumers in the kernel that are traced, by the
	// name of their module. nil takes all.
	TakesConsumer func(module string) bool
	// Rate returns what a device carries in one direction, in bytes per second.
	Rate   func(device string) (float64, bool)
	Logger *slog.Logger
}

// platform is the part of the world that only Linux has.
type platform struct {
	// startEngine loads and attaches the probes. Where there is no RDMA yet it
	// succeeds and waits.
	startEngine func(context.Context, engineConfig) (engine, error)
	// readClocks returns CLOCK_REALTIME and CLOCK_MONOTONIC, read together.
	readClocks func() (clockReading, error)
	// errnoName returns the name of an error number, such as ENOMEM.
	errnoName func(errno uint32) string
	// openHost opens what the receiver reads of the host whose root directory
	// is at root.
	openHost func(root string, logger *slog.Logger) (host, error)
	// causes are what slow work requests are judged by.
	causes []diagnose.Cause
}

// host is the machine beside the tracer.
type host struct {
	facts     hostFacts
	processes processSource
	topology  topology
	// executable returns the name of the executable of a process, "" when it
	// cannot be read.
	executable func(pid int) string
	// rate returns what a device carries in one direction, in bytes per second.
	rate func(device string) (float64, bool)
	// throttling returns what CPU quotas have taken from a process so far. It is nil
	// where there is no such source.
	throttling func(pid int) (process.Throttling, error)
	// threads tells what threads do, nil where there is no such source.
	threads threads
	// stolen returns for how long a hypervisor took each CPU away. It is nil where
	// there is no such source.
	stolen func() (map[uint32]time.Duration, error)
	// idleStates returns the idle states of a CPU. It is nil where there is no such
	// source.
	idleStates func(cpu uint32) ([]fabric.IdleState, error)
	// gpus lists the GPUs. It is nil where there is no such source.
	gpus func() ([]fabric.PCIDevice, error)
	// listQueuePairs has the kernel tell a running engine of the queue pairs that
	// are older than it, which may take long. It is nil where the kernel cannot.
	listQueuePairs func()
	// watchDevices returns the source of the state of the devices that takes
	// wants, with the counters of those that counts wants; nil takes all. The
	// function itself is nil where there is no such source.
	watchDevices func(takes, counts func(device string) bool) deviceSource
}

// hostFacts name the machine. "" is not known.
type hostFacts struct {
	// Name is the host name, ID the machine-id.
	Name, ID string
}

// processSource knows the facts of traced processes, also of those that have
// exited since. It is safe for concurrent use.
type processSource interface {
	// Capture starts reading the facts of a process and returns at once.
	Capture(id verbs.ProcessID, name string)
	// Facts returns the facts of a process, and may wait for them for a
	// second. They count also with an error that wraps process.ErrIncomplete.
	Facts(id verbs.ProcessID) (process.Facts, error)
}

// numaNodes knows on which NUMA node things are; ok is false where the machine
// does not say.
type numaNodes interface {
	DeviceNode(device string) (node int, ok bool)
	CPUNode(cpu int) (node int, ok bool)
}

// topology knows where things are.
type topology interface {
	numaNodes
	// GPU returns the PCI address of the GPU with a UUID, and how far it is from a
	// device; "" where that is not known.
	GPU(uuid, device string) (address string, relation fabric.Relation)
}
