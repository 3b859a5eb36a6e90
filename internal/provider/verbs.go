package provider

import (
	"fmt"
	"io"
	"sort"
	"strings"
)

// Offsets of members of struct ibv_context (infiniband/verbs.h). The structure
// is compiled into applications and has been the same in every release.
const (
	contextPollCQ      = 96
	contextPostSRQRecv = 168
	contextPostSend    = 208
	contextPostRecv    = 216
	// contextLastOp is _compat_async_event, the last operation.
	contextLastOp = 256
)

// InspectVerbs analyses libibverbs: the functions it exports and the layout of
// the tables it takes. Errors wrap ErrNotVerbs, Err32Bit, ErrNotELF,
// ErrMachine, ErrMalformed, ErrTooLarge or ErrUnresolved.
func InspectVerbs(file io.ReaderAt) (*Library, Slots, error) {
	img, err := openImage(file)
	if err != nil {
		return nil, Slots{}, err
	}
	kind, a, err := img.classify()
	if err != nil {
		return nil, Slots{}, err
	}
	if kind != Verbs {
		return nil, Slots{}, fmt.Errorf("%w: %s is not defined", ErrNotVerbs, setOpsName)
	}
	return a.inspectVerbs()
}

func (a *analysis) inspectVerbs() (*Library, Slots, error) {
	if err := a.prepare(); err != nil {
		return nil, Slots{}, err
	}
	slots, err := a.slots()
	if err != nil {
		return nil, Slots{}, fmt.Errorf("%s: %w", setOpsName, err)
	}
	lib := a.library(Verbs)
	lib.Name = "libibverbs"
	if err := a.exports(lib); err != nil {
		return nil, Slots{}, err
	}
	if err := a.crossCheck(lib); err != nil {
		return nil, Slots{}, err
	}
	if !a.spend(0) {
		return nil, Slots{}, errEffort
	}
	lib.Notes = a.notes
	return lib, slots, nil
}

// exports adds the exported functions in the version that programs linked
// today use; the versions for old binaries are other functions.
func (a *analysis) exports(lib *Library) error {
	wanted := map[string]Function{
		setOpsName:             SetOps,
		"ibv_create_qp":        CreateQP,
		"ibv_modify_qp":        ModifyQP,
		"ibv_destroy_qp":       DestroyQP,
		"ibv_destroy_srq":      DestroySRQ,
		"ibv_cmd_create_qp":    CmdCreateQP,
		"ibv_cmd_create_qp_ex": CmdCreateQP, "ibv_cmd_create_qp_ex2": CmdCreateQP,
	}
	seen := map[string]bool{}
	for i := range a.symbols {
		s := &a.symbols[i]
		function, ok := wanted[s.name]
		if !ok || !s.defined || s.hidden || seen[s.name] {
			continue
		}
		seen[s.name] = true
		target, err := a.locate(s.value)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		target.Function, target.Symbol = function, strings.Clone(s.name)
		lib.Targets = append(lib.Targets, target)
	}
	sortTargets(lib.Targets)
	return nil
}

func sortTargets(targets []Target) {
	sort.SliceStable(targets, func(i, j int) bool {
		if targets[i].Function != targets[j].Function {
			return targets[i].Function < targets[j].Function
		}
		return targets[i].Offset < targets[j].Offset
	})
}

// slots reads the body of verbs_set_ops. For each member of the table it loads
// the member, skips it if it is NULL, and stores it into the context. The
// last operation of ibv_context is the last member of all, so the highest
// store tells where in the private structure ibv_context begins.
func (a *analysis) slots() (Slots, error) {
	f, err := a.setOpsBody()
	if err != nil {
		return Slots{}, err
	}
	f.connect(a.leaves)
	slotAt := map[int64]int{}
	count := 0
	var last int64
	for i := range f.instructions {
		in := &f.instructions[i]
		for _, s := range in.stores[:in.numStores] {
			slot, ok := a.member(f, i, s)
			if !ok {
				continue
			}
			// Some members go to the private copy only.
			count = max(count, slot+1)
			if offset, ok := a.inContext(f, i, s); ok {
				slotAt[offset] = slot
				last = max(last, offset)
			}
		}
	}
	return slotsFrom(slotAt, last-contextLastOp, count)
}

func (a *analysis) setOpsBody() (*function, error) {
	for i := range a.symbols {
		s := &a.symbols[i]
		if s.name != setOpsName || !s.defined || s.hidden {
			continue
		}
		bounds, ok := a.frames.function(s.value)
		if !ok || bounds.start != s.value {
			return nil, fmt.Errorf("%w: no bounds of the function at %#x", ErrUnresolved, s.value)
		}
		return a.decodeFunction(bounds)
	}
	return nil, fmt.Errorf("%w: not defined", ErrUnresolved)
}

// member recognises a store of a member of the table, the second argument.
func (a *analysis) member(f *function, index int, s store) (slot int, ok bool) {
	const maxSlots = 1024
	from := a.values(f, s.value, index)
	if len(from) != 1 || from[0].origin != memoryValue || from[0].base != argumentValue ||
		from[0].register != a.cpu.arguments[1] || from[0].add != 0 {
		return 0, false
	}
	at := from[0].at
	if at < 0 || at%8 != 0 || at/8 >= maxSlots {
		return 0, false
	}
	return int(at / 8), true
}

// inContext recognises a store into the context, the first argument.
func (a *analysis) inContext(f *function, index int, s store) (offset int64, ok bool) {
	to := a.values(f, s.base, index)
	if len(to) != 1 || to[0].origin != argumentValue || to[0].register != a.cpu.arguments[0] {
		return 0, false
	}
	return to[0].add + s.offset, true
}

// slotsFrom picks the members of interest, given which slot each member of
// the context comes from and where in it ibv_context begins.
func slotsFrom(slotAt map[int64]int, context int64, count int) (Slots, error) {
	slots := Slots{Count: count}
	members := [...]struct {
		offset int64
		slot   *int
		name   string
	}{
		{contextPollCQ, &slots.PollCQ, "poll_cq"},
		{contextPostRecv, &slots.PostRecv, "post_recv"},
		{contextPostSend, &slots.PostSend, "post_send"},
		{contextPostSRQRecv, &slots.PostSRQRecv, "post_srq_recv"},
	}
	for _, m := range members {
		slot, ok := slotAt[context+m.offset]
		if !ok {
			return Slots{}, fmt.Errorf("%w: no copy of %s among %d copies", ErrUnresolved, m.name, len(slotAt))
		}
		*m.slot = slot
	}
	// The members are in the order of the alphabet in every release.
	if slots.PostRecv != slots.PollCQ+1 || slots.PostSend != slots.PollCQ+2 || slots.PostSRQRecv != slots.PollCQ+4 {
		return Slots{}, fmt.Errorf("%w: members of the table in an unknown order: %+v", ErrUnresolved, slots)
	}
	return slots, nil
}
