package provider

// sizeofWC is the size of struct ibv_wc (infiniband/verbs.h), the same since
// the first release.
const sizeofWC = 48

// quantity names something whose content is fixed once it exists: an
// argument, the result of an instruction, what meets at a join.
type quantity int32

// The quantities that every walk has.
const (
	noQuantity quantity = iota
	// quantityConstant is 0: a number is quantityConstant plus it.
	quantityConstant
	// quantityStack is the stack pointer at the entry.
	quantityStack
	// quantityQueue is the first argument: the CQ or QP.
	quantityQueue
	// quantityCount is the second argument of poll_cq, quantityOutput the
	// third argument: the array of completions, or bad_wr.
	quantityCount
	quantityOutput
	firstQuantity
)

// word is a quantity plus a number.
type word struct {
	of  quantity
	add int64
}

func number(n int64) word { return word{quantityConstant, n} }

func (w word) plus(n int64) word {
	if w.of == noQuantity {
		return w
	}
	w.add += n
	return w
}

type quantityKind uint8

const (
	// kindResult is the unknown result of an instruction.
	kindResult quantityKind = iota
	kindFixed
	// kindCall is what a call returns.
	kindCall
	// kindStep is the first operand plus or minus 1: how things are counted.
	kindStep
	// kindSum is a+b, kindDifference a-b, kindScaled scale*a, kindChoice a or b.
	kindSum
	kindDifference
	kindScaled
	kindChoice
	// kindAligned is an aligned stack pointer.
	kindAligned
	// kindJoin is one of several at the start of a block.
	kindJoin
)

// quantityKey is the origin of a quantity, by which it is recognised.
type quantityKey struct {
	kind quantityKind
	// at is the address of the instruction or block, part tells several of
	// one instruction apart.
	at   uint64
	part int
	// cell is that of a join.
	cell cell
}

// quantityInfo is what is known of a quantity.
type quantityInfo struct {
	quantityKey
	a, b  word
	scale int64
	// ways are the operands of a join, in the order of its block's befores.
	ways []way
}

// way is what comes over one edge into a join.
type way struct {
	from int
	word word
}

// quantities is the table of one walk.
type quantities struct {
	info  []quantityInfo
	known map[quantityKey]quantity
}

func newQuantities() *quantities {
	q := &quantities{known: map[quantityKey]quantity{}, info: make([]quantityInfo, firstQuantity)}
	for i := range q.info {
		q.info[i].kind = kindFixed
	}
	return q
}

// get returns the quantity with the key, with these operands from now on.
func (q *quantities) get(key quantityKey, a, b word, scale int64) quantity {
	id, ok := q.known[key]
	if !ok {
		id = quantity(len(q.info))
		q.info = append(q.info, quantityInfo{quantityKey: key})
		q.known[key] = id
	}
	q.info[id].a, q.info[id].b, q.info[id].scale = a, b, scale
	return id
}

// maxReduce bounds following chains of operands.
const maxReduce = 64

// reduce undoes counting: a word as what was counted from, plus the count.
// Joins of equal words are looked through.
func (q *quantities) reduce(w word) word { return q.reduceWithin(w, maxReduce) }

func (q *quantities) reduceWithin(w word, depth int) word {
	for ; depth > 0; depth-- {
		info := &q.info[w.of]
		switch info.kind {
		case kindStep:
			w = info.a.plus(w.add + info.scale)
		case kindJoin:
			inner, ok := q.agreed(w.of, depth/4)
			if !ok {
				return w
			}
			w = inner.plus(w.add)
		default:
			return w
		}
	}
	return w
}

// agreed is the one word that all ways into a join reduce to.
func (q *quantities) agreed(join quantity, depth int) (word, bool) {
	var all word
	for _, way := range q.info[join].ways {
		w := way.word
		if depth > 0 {
			w = q.reduceWithin(w, depth)
		}
		if w.of == noQuantity || w.of == join || all.of != noQuantity && w != all {
			return word{}, false
		}
		all = w
	}
	return all, all.of != noQuantity
}
