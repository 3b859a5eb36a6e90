package rdmareceiver

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/safchain/ethtool"
	"go.opentelemetry.io/collector/receiver"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// processCacheSize is how many processes are remembered, also after their end.
const processCacheSize = 16384

// NewFactory returns the factory of the receiver of type rdma.
func NewFactory() receiver.Factory {
	return newFactory(platform{
		startEngine: startEngine,
		readClocks:  readClocks,
		errnoName:   errnoName,
		openHost:    openHost,
	})
}

// startEngine loads and attaches the probes.
func startEngine(ctx context.Context, cfg engineConfig) (engine, error) {
	t, err := tracer.Start(ctx, tracer.Config{
		Threshold:         cfg.Threshold,
		MaxMapBytes:       cfg.MaxMapBytes,
		EntryReturn:       cfg.EntryReturn,
		MaxThreadCPURatio: cfg.MaxThreadCPURatio,
		MaxAgentCPUCores:  cfg.MaxAgentCPUCores,
		Root:              cfg.Root,
		CacheDirectory:    cfg.CacheDirectory,
		NewProcess:        cfg.NewProcess,
		TakesProcess:      cfg.TakesProcess,
		TakesDevice:       cfg.TakesDevice,
		Rate:              cfg.Rate,
		Logger:            cfg.Logger,
	})
	if err != nil {
		// Not t: a nil tracer in an interface would not be nil.
		return nil, err
	}
	listQueuePairs(cfg.Root, cfg.Logger)
	return t, nil
}

// openHost opens the host whose root directory is at root.
func openHost(root string, logger *slog.Logger) (host, error) {
	proc := filepath.Join(root, "proc")
	if _, err := os.Stat(filepath.Join(proc, "self")); err != nil {
		return host{}, fmt.Errorf("root_path %s has no proc file system of the host: %w", root, err)
	}
	facts := process.NewReader(proc)
	machine := fabric.NewReader(filepath.Join(root, "sys"))
	return host{
		facts:      readHostFacts(root, logger),
		processes:  process.NewCache(facts, processCacheSize),
		topology:   machineTopology{&sysfsTopology{machine: machine, now: time.Now}, newGPUs(machine, proc)},
		rate:       machine.RateBytesPerSecond,
		executable: func(pid int) string { return executable(facts, pid) },
		watchDevices: func(takes, counts func(string) bool) deviceSource {
			counters := fabric.NewCounterReader(machine, interfaces{}, counts, logger, time.Now)
			return fabric.NewSampler(machine, counters, takes, logger)
		},
	}, nil
}

// interfaces asks the drivers of network interfaces in this process's network
// namespace.
type interfaces struct{}

func (interfaces) BusInfo(netdev string) (string, error)          { return ethtool.BusInfo(netdev) }
func (interfaces) Stats(netdev string) (map[string]uint64, error) { return ethtool.Stats(netdev) }

// executable is "" for a process that cannot be read: it then matches only
// filters that take everything.
func executable(reader *process.Reader, pid int) string {
	facts, _ := reader.Facts(pid)
	return facts.Executable
}

// readHostFacts reads the names of the host. /proc/sys/kernel/hostname is that
// of the reader's UTS namespace, so in a container /etc/hostname of the host
// goes first.
func readHostFacts(root string, logger *slog.Logger) hostFacts {
	name := firstLine(filepath.Join(root, "etc/hostname"))
	if own, err := os.Hostname(); err == nil && (filepath.Clean(root) == "/" || name == "") {
		name = own
	}
	if name == "" {
		logger.Warn("The name of the host is not known; telemetry goes without host.name.")
	}
	return hostFacts{Name: name, ID: firstLine(filepath.Join(root, "etc/machine-id"))}
}

// firstLine is "" when the file cannot be read.
func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// errnoName returns the name of an error number of this kernel.
func errnoName(errno uint32) string {
	if name := unix.ErrnoName(syscall.Errno(errno)); name != "" {
		return name
	}
	return fmt.Sprintf("errno_%d", errno)
}
