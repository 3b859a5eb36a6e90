package rdmareceiver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/safchain/ethtool"
	"go.opentelemetry.io/collector/receiver"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
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
		causes:      diagnose.Causes(),
	})
}

// startEngine loads and attaches the probes.
func startEngine(ctx context.Context, cfg engineConfig) (engine, error) {
	t, err := tracer.Start(ctx, tracer.Config{
		Threshold:         cfg.Threshold,
		MaxMapBytes:       cfg.MaxMapBytes,
		EntryReturn:       cfg.EntryReturn,
		CQETimestamps:     cfg.CQETimestamps,
		MaxThreadCPURatio: cfg.MaxThreadCPURatio,
		MaxAgentCPUCores:  cfg.MaxAgentCPUCores,
		Root:              cfg.Root,
		CacheDirectory:    cfg.CacheDirectory,
		NewProcess:        cfg.NewProcess,
		TakesProcess:      cfg.TakesProcess,
		TakesDevice:       cfg.TakesDevice,
		TakesConsumer:     cfg.TakesConsumer,
		Rate:              cfg.Rate,
		Logger:            cfg.Logger,
	})
	if err != nil {
		// Not t: a nil tracer in an interface would not be nil.
		return nil, err
	}
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
	groups := filepath.Join(root, "sys", "fs", "cgroup")
	return host{
		facts:          readHostFacts(root, logger),
		processes:      process.NewCache(facts, processCacheSize),
		topology:       machineTopology{machine, newGPUs(machine, proc)},
		rate:           machine.RateBytesPerSecond,
		executable:     func(pid int) string { return executable(facts, pid) },
		throttling:     func(pid int) (process.Throttling, error) { return facts.Throttling(groups, pid) },
		threads:        facts,
		stolen:         facts.Stolen,
		idleStates:     machine.IdleStates,
		gpus:           machine.GPUs,
		listQueuePairs: func() { listQueuePairs(root, openResources, logger) },
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
	name, _ := reader.Executable(pid)
	return name
}

// readHostFacts reads the names of the host. /proc/sys/kernel/hostname is that
// of the reader's UTS namespace, so in a container /etc/hostname of the host
// goes first, and its own name counts only where it is the host's.
func readHostFacts(root string, logger *slog.Logger) hostFacts {
	name := firstLine(root, "etc/hostname")
	if filepath.Clean(root) == "/" || name == "" && sharesHostname(root) {
		if own, err := os.Hostname(); err == nil {
			name = own
		}
	}
	if name == "" {
		logger.Warn("The name of the host is not known; telemetry goes without host.name.")
	}
	return hostFacts{Name: name, ID: firstLine(root, "etc/machine-id")}
}

// sharesHostname reports whether this process is in the UTS namespace of the
// host's first one, as containers on the host's network are.
func sharesHostname(root string) bool {
	first, err := os.Readlink(filepath.Join(root, "proc/1/ns/uts"))
	own, ownErr := os.Readlink("/proc/self/ns/uts")
	return err == nil && ownErr == nil && first == own
}

// firstLine is "" when the file cannot be read.
func firstLine(root, name string) string {
	file, err := openInRoot(root, name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4<<10))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// openInRoot opens a file as the host would: some distributions have /etc/hostname
// or /etc/machine-id as an absolute link, which elsewhere would lead to the
// container's own file. os.Root refuses such a link instead.
func openInRoot(root, name string) (*os.File, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(root, name), Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// errnoName returns the name of an error number of this kernel.
func errnoName(errno uint32) string {
	if name := unix.ErrnoName(syscall.Errno(errno)); name != "" {
		return name
	}
	return fmt.Sprintf("errno_%d", errno)
}
