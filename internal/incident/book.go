package incident

import (
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// State is how far an incident has come.
type State uint8

// The states, in their order.
const (
	Opened State = iota
	Updated
	Closed
)

// String returns the value of rdma.incident.state.
func (s State) String() string {
	switch s {
	case Opened:
		return "open"
	case Updated:
		return "update"
	default:
		return "closed"
	}
}

// Record tells of an incident: that it was opened, what is new, or that it is
// over.
type Record struct {
	State    State
	Incident Incident
	// Unfinished is true of one that is closed because nobody looks any more, and not
	// because it is over.
	Unfinished bool
}

// Config is how a [Book] is kept.
type Config struct {
	// Silence is how long nothing may be folded in before an incident is over.
	Silence time.Duration
	// Holding is for how long after its opening an incident without a cause becomes
	// that of a cause, when one is found on one of its queue pairs.
	Holding time.Duration
	// Patience is for how long nothing is told of an incident without a cause, so
	// that the first that is told of it may be its cause.
	Patience time.Duration
	// Repeat is the least time between two updates that bring no other cause or
	// confidence.
	Repeat time.Duration
	// Least is what it takes to open an incident.
	Least Least
	// MaxOpen bounds the incidents that are open. The rest is counted.
	MaxOpen int
	// PerProcess says of a cause whether processes have incidents of their own.
	PerProcess func(cause string) bool
	// NewID makes the name of an incident.
	NewID func() string
}

// Key is what the slow completions of one incident share.
type Key struct {
	Cause, Device string
	// Process is set where the cause is one that happens in one process.
	Process verbs.ProcessID
}

// Book holds the incidents that are open. It is not safe for concurrent use.
type Book struct {
	cfg  Config
	open map[Key]*entry
	// order has the keys in the order of opening.
	order         []Key
	beyond, minor uint64
}

// New returns an empty Book.
func New(cfg Config) *Book { return &Book{cfg: cfg, open: map[Key]*entry{}} }

// Fold puts a report into the incident that it belongs to.
func (b *Book) Fold(now uint64, r *Report) {
	e := b.find(now, r)
	if e == nil {
		b.beyond += r.Slow
		return
	}
	e.add(now, r)
}

// Beyond counts the slow completions that are in no incident, because too many
// were open.
func (b *Book) Beyond() uint64 { return b.beyond }

// Minor counts the slow completions that were too little for an incident.
func (b *Book) Minor() uint64 { return b.minor }

// Active counts the incidents that were told of and are not over.
func (b *Book) Active() map[Key]int {
	active := make(map[Key]int, len(b.open))
	for key, e := range b.open {
		if e.announced {
			active[Key{Cause: key.Cause, Device: key.Device}]++
		}
	}
	return active
}

// find returns the incident of a report, and opens it if there is none. It is nil
// when there is no room.
func (b *Book) find(now uint64, r *Report) *entry {
	key := b.keyOf(r)
	if e := b.open[key]; e != nil {
		return e
	}
	if e := b.turn(now, key, r); e != nil {
		return e
	}
	if len(b.open) >= b.cfg.MaxOpen {
		return nil
	}
	e := &entry{Incident: Incident{ID: b.cfg.NewID(), Device: key.Device, Process: key.Process}, opened: now}
	b.open[key] = e
	b.order = append(b.order, key)
	return e
}

func (b *Book) keyOf(r *Report) Key {
	key := Key{Cause: r.Verdict.Cause, Device: r.Device}
	if b.cfg.PerProcess(key.Cause) {
		key.Process = r.Queue.Process
	}
	return key
}

// turn makes an incident without a cause that of a cause: the first windows of
// trouble may not have held what it takes to see it.
func (b *Book) turn(now uint64, key Key, r *Report) *entry {
	unknown := Key{Cause: diagnose.Unknown, Device: key.Device}
	e := b.open[unknown]
	if e == nil || key.Cause == diagnose.Unknown || now-e.opened > uint64(b.cfg.Holding) {
		return nil
	}
	if !e.Queues.seen[r.Queue] || key.Process != (verbs.ProcessID{}) && len(e.Processes.seen) > 1 {
		return nil
	}
	delete(b.open, unknown)
	b.open[key] = e
	b.order[slices.Index(b.order, unknown)] = key
	e.Process = key.Process
	return e
}

// Step returns what there is to tell, in the order of opening: everything that was
// opened since the last step, what is new of others, and what is over.
func (b *Book) Step(now uint64) []Record {
	return b.step(now, func(e *entry) bool { return now-e.folded > uint64(b.cfg.Silence) })
}

// Close ends all incidents and returns what there is to tell.
func (b *Book) Close(now uint64) []Record {
	records := b.step(now, func(*entry) bool { return true })
	for i := range records {
		r := &records[i]
		r.Unfinished = r.State == Closed && now-r.Incident.folded <= uint64(b.cfg.Silence)
	}
	return records
}

func (b *Book) step(now uint64, over func(*entry) bool) []Record {
	var records []Record
	tell := func(e *entry, state State) {
		records = append(records, Record{State: state, Incident: e.now()})
		e.told, e.grew, e.turned, e.announced = now, false, false, true
	}
	b.order = slices.DeleteFunc(b.order, func(key Key) bool {
		e := b.open[key]
		ends := over(e)
		switch {
		case e.announced:
		case !ends && b.waits(now, key, e):
			return false
		case e.gathered.enough(&b.cfg.Least):
			tell(e, Opened)
		case ends, now-e.opened >= uint64(b.cfg.Least.Gathering):
			b.minor += e.Slow
			delete(b.open, key)
			return true
		default:
			return false
		}
		switch {
		case ends:
			tell(e, Closed)
			delete(b.open, key)
			return true
		case e.turned, e.grew && now-e.told >= uint64(b.cfg.Repeat):
			tell(e, Updated)
		}
		return false
	})
	return records
}

// waits reports whether the cause of an incident may still be found.
func (b *Book) waits(now uint64, key Key, e *entry) bool {
	return key.Cause == diagnose.Unknown && now-e.opened < uint64(b.cfg.Patience)
}
