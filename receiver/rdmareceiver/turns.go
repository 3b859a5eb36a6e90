package rdmareceiver

// turns follows by how much a process has posted more than it has received. Of one
// that posts once for each receive that has two values: the higher after a post, the
// lower after a receive.
type turns struct {
	least, most, present int64
	looks                int
}

// enoughTurns is in how many looks there must have been no third value. On a busy host
// looks are two seconds apart, and no more than these are in idleActive.
const enoughTurns = 5

// The last thing that a process did.
type lastAct int

const (
	lastUnknown lastAct = iota
	lastPosted
	lastReceived
)

func (t *turns) look(u *usage) {
	t.present = int64(u.posted) - int64(u.received)
	if t.looks == 0 {
		t.least, t.most = t.present, t.present
	}
	t.least, t.most = min(t.least, t.present), max(t.most, t.present)
	t.looks++
}

// last is what was done last, as far as the turns tell.
func (t *turns) last() lastAct {
	switch {
	case t.looks < enoughTurns || t.most-t.least != 1:
		return lastUnknown
	case t.present == t.most:
		return lastPosted
	default:
		return lastReceived
	}
}
