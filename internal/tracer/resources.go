package tracer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// coreInterval is how often it is looked whether the RDMA core was loaded.
	coreInterval = time.Second
	// sweepInterval is how often QPs that were destroyed are removed, after they
	// have rested like the slots of queues.
	sweepInterval = 5 * time.Second
	moduleRoot    = "/sys/module"
)

// resources knows what the kernel's RDMA core knows of QPs and CQs, where it can
// be probed. Everything works without it, with less known. It is safe for
// concurrent use, but for refresh and close, which one goroutine calls.
type resources struct {
	log *slog.Logger
	// bound is that of all maps.
	bound   uint64
	tracker *kernelSide
	// state is that of the modules when they were last looked at.
	state string

	mu sync.RWMutex
	// side is nil while the RDMA core is not probed, failed says why not, nil when
	// it is not loaded.
	side   *coreSide
	failed error
	// lost adds up the losses of sides that were closed.
	lost coreLosses

	// nextSweep is for sweep alone.
	nextSweep uint64
}

func newResources(cfg Config, tracker *kernelSide) *resources {
	return &resources{log: cfg.Logger, bound: cfg.MaxMapBytes, tracker: tracker}
}

// refresh probes the RDMA core when it, or a part of it, was loaded since the
// last time, and says whether it did. What prevents that is said once for each
// state of the modules and is no error.
func (r *resources) refresh(ctx context.Context) (changed bool) {
	state := moduleState(moduleRoot)
	if state == r.state {
		return false
	}
	r.state = state
	r.replace(nil, nil)
	if state == "" {
		return true
	}
	side, missing, err := loadCore(ctx, r.bound, r.tracker, strings.Contains(state, userModule))
	if err != nil && ctx.Err() != nil {
		// It is not the core that is at fault: the next refresh loads it.
		r.state = ""
		return true
	}
	if err != nil {
		r.log.Warn("the control path is not seen in the kernel: CQ numbers, addresses and asynchronous events are missing", "error", err)
		r.replace(nil, fmt.Errorf("the RDMA core is not probed, queues are traced without it: %w", err))
		return true
	}
	r.replace(side, nil)
	r.log.Info("probing ib_core", "library", "ib_core", "functions", len(side.functions), "links", len(side.links))
	if len(missing) > 0 {
		r.log.Warn("the control path is seen in part: this kernel lacks functions", "missing", strings.Join(missing, " "))
	}
	return true
}

// failure says why the RDMA core is not probed, nil when it is, or is not loaded.
func (r *resources) failure() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.failed
}

// replace closes the present side.
func (r *resources) replace(side *coreSide, failed error) {
	r.mu.Lock()
	before := r.side
	r.side, r.failed = side, failed
	if before != nil {
		r.lost = r.lost.plus(before.losses())
	}
	r.mu.Unlock()
	if before == nil {
		return
	}
	if err := before.close(); err != nil {
		r.log.Warn("detaching from the RDMA core failed", "error", err)
	}
}

func (r *resources) close() { r.replace(nil, nil) }

// addLosses names what was lost, by reason.
func (r *resources) addLosses(to map[string]uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	lost := r.lost
	if r.side != nil {
		lost = lost.plus(r.side.losses())
	}
	to["kernel_qp_map_full"] = lost.qps
	to["kernel_call_not_followed"] = lost.calls
	to["async_event_ring_buffer_full"] = lost.events
	to["region_map_full"] = lost.regions
	to["registration_map_full"] = lost.registrations
	to["registration_not_followed"] = lost.regionCalls
	to["kernel_probe_skipped"] += lost.skipped
}

// probeInfo describes the probes, false when there are none.
func (r *resources) probeInfo() (verbs.ProbeInfo, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return verbs.ProbeInfo{}, false
	}
	return verbs.ProbeInfo{
		Library: "ib_core", Provider: "ib_core", Functions: r.side.functions, Mode: "control", Link: "kprobe",
	}, true
}

// mapBytes is what the maps take, by the kernel's own count.
func (r *resources) mapBytes() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return 0
	}
	return memoryOfMaps(ownMaps(r.side.collection.Maps, r.tracker.allMaps))
}

// find returns what is known of a QP of a process.
func (r *resources) find(id verbs.QueueID, device string) (bpf.ResourcesKernelQp, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil || device == "" {
		return bpf.ResourcesKernelQp{}, false
	}
	qp, ok := r.side.find(id.QPNumber, device)
	if id.Process.InKernel() {
		return qp, ok && qp.Tgid == 0
	}
	owner := verbs.ProcessID{TGID: qp.Tgid, Incarnation: qp.Incarnation}
	return qp, ok && owner == id.Process
}

// sweep removes the QPs that were destroyed some time ago, and returns those that
// were destroyed since it last did. One goroutine calls it.
func (r *resources) sweep(now uint64) (map[namedQP]bpf.ResourcesKernelQp, error) {
	if now < r.nextSweep {
		return nil, nil
	}
	r.nextSweep = now + uint64(sweepInterval)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return nil, nil
	}
	return r.side.sweep(now)
}

// events is the ring buffer of the present probes, nil without any.
func (r *resources) events() *ebpf.Map {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return nil
	}
	return r.side.collection.Maps[bpf.ResourcesMapAsyncEvents]
}

// watchCore probes the RDMA core whenever it is loaded, and reads its events.
func (t *Tracer) watchCore(ctx context.Context) {
	stop := t.readAsync(ctx)
	defer func() { stop() }()
	every(ctx, coreInterval, func() {
		if t.resources.refresh(ctx) {
			stop()
			stop = t.readAsync(ctx)
		}
	})
}
