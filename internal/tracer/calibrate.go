package tracer

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// hitCosts is what a hit on a probe costs the thread that runs into it, with the
// program's work for an empty poll.
type hitCosts struct{ entry, leave time.Duration }

// publishedCosts are those of processors of 2025 without a hypervisor, the trap
// and the program (docs/overhead.md), where they cannot be measured.
var publishedCosts = hitCosts{entry: 450 * time.Nanosecond, leave: 300 * time.Nanosecond}

// trialCalls is how many calls a cost is measured over: against the start of the
// child, which is in the measurement twice and differs by some 100 µs.
const trialCalls = 10000

// calibrate measures what the probes on poll_cq cost on a child that polls in
// vain, and tells the kernel side.
func (t *Tracer) calibrate() error {
	costs, err := measureHits(t.side, t.kind)
	// What was counted so far is of the child: calls that never return.
	if err := t.side.clearCounters(); err != nil {
		return err
	}
	if err != nil {
		costs = publishedCosts
		t.log.Info("the cost of a probe was not measured, taking the published one", "entry", costs.entry, "return", costs.leave, "reason", err)
	}
	t.log.Debug("what a probe costs", "entry", costs.entry, "return", costs.leave)
	var told [bpf.TrackerHitHITS]uint64
	told[bpf.TrackerHitHIT_ENTRY] = uint64(costs.entry)
	told[bpf.TrackerHitHIT_RETURN] = uint64(costs.leave)
	if err := t.side.collection.Variables[bpf.TrackerVarHitCostNs].Set(told); err != nil {
		return fmt.Errorf("telling the programs what they cost: %w", err)
	}
	return nil
}

func measureHits(side *kernelSide, kind linkKind) (hitCosts, error) {
	entry := probedTrial{bpf.TrackerProgEnterPollCq, false}
	leave := probedTrial{bpf.TrackerProgLeavePollCq, true}
	if err := side.letTrialCount(true); err != nil {
		return hitCosts{}, err
	}
	defer side.letTrialCount(false)
	defer side.forgetCQs(func(*bpf.TrackerCqKey) bool { return true })
	var spent [3]time.Duration
	for i, probes := range [][]probedTrial{nil, {entry}, {leave, entry}} {
		var err error
		if spent[i], err = runTrial(side, trialCalls, kind, probes...); err != nil {
			return hitCosts{}, err
		}
	}
	costs := hitCosts{entry: (spent[1] - spent[0]) / trialCalls, leave: (spent[2] - spent[1]) / trialCalls}
	if costs.entry <= 0 || costs.leave <= 0 {
		return hitCosts{}, fmt.Errorf("10,000 calls took %v without probes, %v with one on entry, %v with one on return too", spent[0], spent[1], spent[2])
	}
	return costs, nil
}

// trialCookie is of a library and a poll_cq that nobody has while the tracer
// starts.
func trialCookie(k *kernelSide) uint64 {
	return uint64(k.libraries.length-1) | uint64(k.functions.length-1)<<32
}

// letTrialCount lets the probes on the child do the work of those on a library
// that counts.
func (k *kernelSide) letTrialCount(on bool) error {
	return errors.Join(
		k.libraries.store(k.libraries.length-1, &bpf.TrackerLibrary{AttachedNs: uint64(asUint32(on))}),
		k.functions.store(k.functions.length-1, &bpf.TrackerPollFunction{Returns: asUint32(on)}),
	)
}
