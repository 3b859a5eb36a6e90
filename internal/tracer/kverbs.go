package tracer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// deviceRoot lists the RDMA devices.
const deviceRoot = "/sys/class/infiniband"

// kernelVerbs traces the posts and completions of consumers in the kernel, where
// the RDMA core is loaded. Everything works without it, with those unseen. It is
// safe for concurrent use, but for refresh and close, which one goroutine calls.
type kernelVerbs struct {
	log       *slog.Logger
	threshold time.Duration
	tracker   *kernelSide
	// newLibrary takes an element of the map of libraries for a driver,
	// freeLibrary gives it back.
	newLibrary  func() (uint32, error)
	freeLibrary func(uint32) error

	// core is the RDMA core that is probed, tried the modules of drivers that
	// were, in vain or not, and asked the devices whose drivers are known.
	core  uint64
	tried map[string]uint64
	asked map[string]bool
	// named are the drivers that are looked for by their names.
	named []driver

	mu sync.RWMutex
	// side is nil while the RDMA core is not probed, failed says why not, nil when
	// it is not loaded.
	side    *kverbsSide
	failed  error
	drivers map[string]*probedDriver
	// gone counts what was skipped of drivers that are gone, closed that of earlier
	// loads of the RDMA core, total that of all when it was last looked at.
	gone, closed, total skips
	// names are those of consumers by their index.
	names map[uint32]string
}

func newKernelVerbs(cfg Config, tracker *kernelSide) *kernelVerbs {
	return &kernelVerbs{
		log: cfg.Logger, threshold: cfg.Threshold, tracker: tracker,
		tried: map[string]uint64{}, asked: map[string]bool{}, drivers: map[string]*probedDriver{},
		named: cfg.namedDrivers,
	}
}

// refresh probes the RDMA core and drivers that were loaded since the last time.
// What prevents that is said once for each module and is no error.
func (k *kernelVerbs) refresh(ctx context.Context) {
	if core := moduleInode(moduleRoot, "ib_core"); core != k.core {
		k.closeAll()
		k.core = core
		if core != 0 {
			k.open(ctx)
		}
	}
	if k.side == nil {
		return
	}
	k.refreshDrivers(ctx, moduleRoot)
	if err := k.askDevices(ctx, deviceRoot); err != nil {
		k.log.Warn("the drivers of RDMA devices are not all known", "error", err)
	}
	if err := errors.Join(k.countSkipped(), k.sweep()); err != nil {
		k.log.Warn("looking after the probes on kernel verbs failed", "error", err)
	}
}

// open loads the programs on the RDMA core.
func (k *kernelVerbs) open(ctx context.Context) {
	side, missing, err := loadKverbs(ctx, k.tracker, k.threshold)
	if err != nil && ctx.Err() != nil {
		k.core = 0 // The next refresh loads them.
		return
	}
	if err != nil {
		k.log.Warn("consumers of RDMA in the kernel, such as NVMe-oF, are not seen", "error", err)
		k.mu.Lock()
		k.failed = fmt.Errorf("consumers of RDMA in the kernel are not seen: %w", err)
		k.mu.Unlock()
		return
	}
	if len(missing) > 0 {
		k.log.Warn("consumers of RDMA in the kernel are seen in part: this kernel lacks functions", "missing", strings.Join(missing, " "))
	}
	k.mu.Lock()
	k.side = side
	k.mu.Unlock()
}

// failure says why consumers in the kernel are not seen, nil when they are, or the
// RDMA core is not loaded.
func (k *kernelVerbs) failure() error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.failed
}

// refreshDrivers probes the drivers that were loaded, and forgets those that are
// gone, by the directory of loaded modules.
func (k *kernelVerbs) refreshDrivers(ctx context.Context, modules string) {
	for module, inode := range k.tried {
		if moduleInode(modules, module) != inode {
			k.drop(module)
		}
	}
	for _, d := range k.named {
		if inode := moduleInode(modules, d.module); inode != 0 && k.tried[d.module] != inode && ctx.Err() == nil {
			k.tried[d.module] = inode
			k.attach(ctx, d)
		}
	}
}

// attach probes a driver and says how, or what prevents it.
func (k *kernelVerbs) attach(ctx context.Context, d driver) {
	cookie, err := k.newLibrary()
	if err != nil {
		k.log.Warn("kernel verbs of a driver are not seen", "module", d.module, "error", err)
		return
	}
	probed, why, err := k.side.attachDriver(ctx, d, cookie)
	if err == nil {
		err = k.begin(probed)
	}
	if err != nil {
		err = errors.Join(err, k.freeLibrary(cookie))
		if ctx.Err() == nil { // Else it is not the driver that is at fault.
			k.log.Warn("kernel verbs of a driver are not seen", "module", d.module, "error", err)
		}
		return
	}
	if why != nil {
		k.log.Info("kernel verbs of a driver are probed by kprobes, of which some may be skipped unseen", "module", d.module, "reason", why)
	}
	k.mu.Lock()
	k.drivers[d.module] = probed
	k.mu.Unlock()
	k.log.Info("probing "+d.module, "library", d.module, "functions", len(probed.names()), "links", len(probed.links), "by", probed.how)
}

// begin lets what the driver does count from now on.
func (k *kernelVerbs) begin(d *probedDriver) error {
	now, err := monotonic()
	if err != nil {
		return errors.Join(err, d.close())
	}
	returns := uint32(1)<<bpf.TrackerPostFunctionPOST_FUNCTIONS - 1
	library := bpf.TrackerLibrary{AttachedNs: now, Returns: returns}
	if err := k.tracker.libraries.store(d.cookie, &library); err != nil {
		return errors.Join(err, d.close())
	}
	return nil
}

// drop forgets a driver. Its devices, which come back by the same names with
// another load of the module, are to be asked again.
func (k *kernelVerbs) drop(module string) {
	delete(k.tried, module)
	clear(k.asked)
	d := k.drivers[module]
	if d == nil {
		return
	}
	k.mu.Lock()
	delete(k.drivers, module)
	k.gone = k.gone.plus(d.skipped())
	k.mu.Unlock()
	none := k.tracker.libraries.store64(d.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), 0)
	if err := errors.Join(none, d.close(), k.freeLibrary(d.cookie)); err != nil {
		k.log.Warn("detaching from a driver failed", "module", module, "error", err)
	}
}

func (k *kernelVerbs) closeAll() {
	for _, module := range slices.Collect(maps.Keys(k.drivers)) {
		k.drop(module)
	}
	clear(k.tried)
	clear(k.asked)
	k.mu.Lock()
	side := k.side
	k.side, k.failed, k.names = nil, nil, nil
	k.closed, k.gone = k.total, skips{}
	k.mu.Unlock()
	if side == nil {
		return
	}
	if err := side.close(); err != nil {
		k.log.Warn("detaching from the RDMA core failed", "error", err)
	}
}

// askDevices asks the driver of every new device for the state of a port, and
// probes the functions that the kernel side saw then, where it does not know them.
func (k *kernelVerbs) askDevices(ctx context.Context, directory string) error {
	files, err := portStates(directory)
	if err != nil {
		return err
	}
	present := map[string]bool{}
	isNew := false
	for _, file := range files {
		present[file] = true
		if k.asked[file] {
			continue
		}
		if _, err := os.ReadFile(file); err != nil {
			return fmt.Errorf("asking a device for the state of its port: %w", err)
		}
		isNew = true
	}
	k.asked = present
	if !isNew {
		return nil
	}
	return k.findDrivers(ctx)
}

// findDrivers probes drivers by the functions of their devices.
func (k *kernelVerbs) findDrivers(ctx context.Context) error {
	addresses := map[uint64]bool{}
	var all []bpf.KverbsDriverVerbs
	var poll uint64
	var functions bpf.KverbsDriverVerbs
	entries := k.side.collection.Maps[bpf.KverbsMapDriverFunctions].Iterate()
	for entries.Next(&poll, &functions) {
		all = append(all, functions)
		for _, a := range []uint64{functions.PostSend, functions.PostRecv, functions.PostSrqRecv, functions.PollCq} {
			addresses[a] = true
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading the functions of drivers: %w", err)
	}
	symbols, err := findSymbols(nil, addresses)
	if err != nil {
		return err
	}
	for _, f := range all {
		d, ok := symbols.driver(f)
		switch {
		case !ok && len(k.drivers) > 0: // It is most likely one that was probed by name.
		case !ok:
			k.log.Warn("kernel verbs of a driver are not seen: its functions have no names in /proc/kallsyms, or the addresses there are hidden (kptr_restrict, CAP_SYSLOG)",
				"functions", len(symbols.names))
		case !k.knows(d):
			k.tried[d.module] = moduleInode(moduleRoot, d.module)
			k.attach(ctx, d)
		}
	}
	return nil
}

// driver names the functions of a driver, false where they are not known.
func (s kernelSymbols) driver(f bpf.KverbsDriverVerbs) (driver, bool) {
	poll, ok := s.names[f.PollCq]
	d := driver{module: poll.module}
	d.functions = [numVerbs]string{s.names[f.PostSend].name, s.names[f.PostRecv].name, s.names[f.PostSrqRecv].name, poll.name}
	return d, ok && d.functions[verbPostSend] != ""
}

func (k *kernelVerbs) knows(d driver) bool {
	for _, known := range k.drivers {
		if known.functions[verbPollCQ] == d.functions[verbPollCQ] {
			return true
		}
	}
	return false
}

// forgotten is after how long a call whose return was not seen is forgotten.
const forgotten = 10 * time.Second

// sweep removes calls whose return was not seen.
func (k *kernelVerbs) sweep() error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	var frame uint64
	var call bpf.KverbsCall
	return deleteMatching(k.side.collection.Maps[bpf.KverbsMapKernelCalls], &frame, &call, func() bool {
		return now > call.EntryNs+uint64(forgotten)
	})
}
