package provider

// Where is the entry of the CQ that a completion was made of? It is proven by
// the number of the queue pair: a word read from the entry, its bytes swapped,
// 24 bits of it stored to the completion. Whatever holds the address that the
// word was read from holds the entry's.

// The layout of struct ibv_wc is public (infiniband/verbs.h).
const (
	qpNumberInWC   = 28
	sizeofQPNumber = 4
	qpNumberMask   = 1<<24 - 1
)

// qpNumberInCQE is where the number is in the entries of a provider: sop_drop_qpn
// of struct mlx5_cqe64 (infiniband/mlx5dv.h of rdma-core). Others would have to
// be known to be of use.
var qpNumberInCQE = map[string]int64{"mlx5": 56}

// cqeRead is a store of the number of the queue pair into a completion.
type cqeRead struct {
	// into is the address of the member, from that of the entry.
	into, from word
}

// cqeReads tells before each instruction which store was the last one, if that
// is the same on every way there.
type cqeReads struct {
	w      *walk
	l      *lockstep
	stores map[[2]int]cqeRead
	before map[[2]int]cqeRead
}

func cqeReadsOf(w *walk, f *fields, l *lockstep) *cqeReads {
	r := &cqeReads{w: w, l: l, stores: map[[2]int]cqeRead{}, before: map[[2]int]cqeRead{}}
	inCQE, ok := qpNumberInCQE[w.c.driver]
	if !ok {
		return r
	}
	for key, stores := range f.stores {
		for _, s := range stores {
			if s.size != sizeofQPNumber || s.at.add-sizeofWC*floorDivide(s.at.add, sizeofWC) != qpNumberInWC {
				continue
			}
			// One that comes from elsewhere replaces what was stored before.
			r.stores[key] = cqeRead{into: s.at}
			if from, ok := w.readSwapped(s.stored); ok {
				r.stores[key] = cqeRead{into: s.at, from: from.plus(-inCQE)}
			}
		}
	}
	if len(r.stores) > 0 {
		r.follow()
	}
	return r
}

// follow carries the stores along the control flow until nothing changes.
func (r *cqeReads) follow() {
	out := make([]*cqeRead, len(r.w.g.blocks))
	for changed := true; changed; {
		changed = false
		for _, b := range r.w.g.order {
			now := r.through(b, r.enter(b, out))
			if out[b] == nil || *out[b] != now {
				out[b], changed = &now, true
			}
			if !r.w.c.spend(len(r.w.g.blocks[b].steps)) {
				clear(r.before)
				return
			}
		}
	}
}

// enter is what all ways into a block agree on, of those that are known so far.
func (r *cqeReads) enter(b int, out []*cqeRead) cqeRead {
	if b == 0 {
		return cqeRead{}
	}
	var all *cqeRead
	for _, p := range r.w.g.blocks[b].before {
		switch {
		case out[p] == nil:
		case all == nil:
			all = out[p]
		case *all != *out[p]:
			return cqeRead{}
		}
	}
	if all == nil {
		return cqeRead{}
	}
	return *all
}

// through follows the instructions of a block. What an instruction or a join
// makes anew is not what was stored before.
func (r *cqeReads) through(b int, last cqeRead) cqeRead {
	steps := r.w.g.blocks[b].steps
	if r.madeAt(last, steps[0].address, true) {
		last = cqeRead{}
	}
	for i, s := range steps {
		key := [2]int{b, i}
		r.before[key] = last
		if r.madeAt(last, s.address, false) {
			last = cqeRead{}
		}
		if stored, ok := r.stores[key]; ok {
			last = stored
		}
	}
	return last
}

func (r *cqeReads) madeAt(read cqeRead, address uint64, join bool) bool {
	for _, q := range []quantity{read.into.of, read.from.of} {
		info := &r.w.q.info[q]
		if q >= firstQuantity && info.at == address && (info.kind == kindJoin) == join {
			return true
		}
	}
	return false
}

// location finds the entry of the completion that is delivered when as many as
// count were delivered before.
func (r *cqeReads) location(b, index int, held []holder, count word) Location {
	last, ok := r.before[[2]int{b, index}]
	if !ok || last.from.of == noQuantity {
		return Location{}
	}
	if offset, ok := r.l.offset(last.into, count); !ok || offset != qpNumberInWC {
		return Location{}
	}
	return addressLocation(held, last.from)
}

// readSwapped follows a number back to where it was read from: 32 bits in the
// other order of bytes, of which 24 remain.
func (w *walk) readSwapped(value word) (from word, ok bool) {
	swapped, masked := false, false
	for range 8 {
		info := &w.q.info[value.of]
		b, index, ok := w.position(info.at)
		if info.kind != kindResult || value.add != 0 || !ok {
			return word{}, false
		}
		s := w.g.blocks[b].steps[index]
		state := w.before(b, index)
		if s.remade.to != noRegister && info.part == int(s.remade.to) {
			swapped, masked = swapped != s.remade.swaps, masked || !s.remade.swaps
			value = state.register(s.remade.from)
			continue
		}
		from, ok := w.readBy(s, info.part, state)
		return from, ok && swapped && masked
	}
	return word{}, false
}

// readBy is the address from which a step read the 32 bits that are its result
// with the number part.
func (w *walk) readBy(s *step, part int, state *machineState) (word, bool) {
	for i, e := range s.effects {
		plain := e.from.kind == formulaSum && e.from.b.kind == operandNone && e.from.add == 0
		if e.to != noRegister && plain && e.from.a.kind == operandMemory && e.from.a.size == sizeofQPNumber &&
			part == partUnknown+partLoad+i*8 {
			return w.machine.address(s, partLoadAddress+i*8, e.from.a.memory, state), true
		}
	}
	return word{}, false
}
