package tracer

import (
	"errors"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// What the kernel side is told of a poll_cq: struct poll_function of bpf/types.h.
// It settles at the entry of each call who delivers its completions, so that
// these may be changed at any moment.

// beginAnew sets how calls are observed that begin from now on, and forgets
// those before: their ends may not be seen, and polls may have gone by between.
// What was counted stays.
func (k *kernelSide) beginAnew(f *pollFunction, state bpf.TrackerPollFunction) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	return errors.Join(
		k.functions.store64(f.index, unsafe.Offsetof(state.SinceNs), now),
		k.functions.store32(f.index, unsafe.Offsetof(state.Inside), 0),
		k.functions.store32(f.index, unsafe.Offsetof(state.Looks), state.Looks),
		k.setReturns(f, state.Returns != 0, state.Compares != 0),
	)
}

// setReturns says whether the returns of calls that begin from now on deliver,
// and whether what sites see of those is compared.
func (k *kernelSide) setReturns(f *pollFunction, returns, compares bool) error {
	return errors.Join(
		k.functions.store32(f.index, unsafe.Offsetof(bpf.TrackerPollFunction{}.Compares), asUint32(compares)),
		k.functions.store32(f.index, unsafe.Offsetof(bpf.TrackerPollFunction{}.Returns), asUint32(returns)),
	)
}

func asUint32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
