package tracer

import (
	"fmt"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// countSkipped looks at how many runs the kernel skipped. Where a call was skipped,
// or a return and nothing made up for it, completions may have gone by: no queue of
// a consumer in the kernel is certain any more.
func (k *kernelVerbs) countSkipped() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.gone.plus(k.side.skipped())
	for _, d := range k.drivers {
		now = now.plus(d.skipped())
	}
	var madeUp uint64
	if err := k.side.collection.Variables[bpf.KverbsVarMadeUp].Get(&madeUp); err != nil {
		return fmt.Errorf("reading how many runs were made up for: %w", err)
	}
	now.returns -= min(now.returns, madeUp)
	before := k.total
	k.total = k.closed.plus(now).noLess(before)
	if k.total.returns == before.returns && k.total.calls == before.calls {
		return nil
	}
	return k.side.collection.Variables[bpf.KverbsVarSkippedRuns].Set(uint32(k.total.returns + k.total.calls))
}

// addLosses names what was lost, by reason.
func (k *kernelVerbs) addLosses(to map[string]uint64) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	to["kernel_entry_skipped"] = k.total.entries
	to["kernel_return_skipped"] = k.total.returns
	to["kernel_probe_skipped"] += k.total.others
}

// probeInfo describes the probes.
func (k *kernelVerbs) probeInfo() []verbs.ProbeInfo {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var all []verbs.ProbeInfo
	for _, d := range k.drivers {
		all = append(all, verbs.ProbeInfo{
			Library: d.module, Provider: d.module, Functions: d.names(), Mode: "kernel", Link: d.how,
		})
	}
	return all
}

// mapBytes is what the maps take that are not the tracker's, by the kernel's own
// count.
func (k *kernelVerbs) mapBytes() uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.side == nil {
		return 0
	}
	return memoryOfMaps(ownMaps(k.side.collection.Maps, k.tracker.allMaps))
}
