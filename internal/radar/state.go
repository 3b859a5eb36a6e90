package radar

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// State is what a receiver knows of its node, for people to look at. It keeps
// little and computes nothing until [State.View] asks. It is safe for concurrent
// use.
type State struct {
	viewers atomic.Int32

	mu        sync.Mutex
	node      Node
	tracing   Tracing
	source    Source
	looks     looks
	troubles  troubles
	ledger    ledger
	incidents incidents
	slowest   slowest
	machine   Machine
	probes    []Probe
	books     Books
	cost      costMeter
}

// Source is what a state needs of who feeds it.
type Source struct {
	// Identify tells who a process is. It may wait a moment and is called from any
	// goroutine.
	Identify func(verbs.ProcessID) Process
	// HidePeers leaves out who is at the other end of queues.
	HidePeers bool
}

// NewState returns the state of a node on which tracing starts.
func NewState() *State {
	return &State{
		tracing: Tracing{Phase: Starting}, troubles: newTroubles(), machine: Machine{Devices: []Device{}, GPUs: []GPU{}},
		probes: []Probe{}, books: booksOf(&verbs.Snapshot{}), cost: newCostMeter(time.Now(), processTime),
	}
}

// Name notes which machine it is.
func (s *State) Name(node Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = node
}

// Watch notes that somebody looks, until the returned function is called.
func (s *State) Watch() (end func()) {
	s.viewers.Add(1)
	return sync.OnceFunc(func() { s.viewers.Add(-1) })
}

// Watched reports whether somebody looks. What costs more than a little and is for
// nobody else is to be left out while nobody does.
func (s *State) Watched() bool { return s.viewers.Load() > 0 }

// Open notes that tracing has begun. Look may be called from then on.
func (s *State) Open(source Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracing, s.source = Tracing{Phase: Running}, source
}

// Impair notes what does not work while tracing goes on; nil is nothing.
func (s *State) Impair(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracing = Tracing{Phase: Running}
	if err != nil {
		s.tracing = Tracing{Phase: Impaired, Reason: err.Error()}
	}
}

// Fail notes that nothing can be traced.
func (s *State) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracing = Tracing{Phase: Failed, Reason: err.Error()}
}

// Look takes the state of the queues at a moment. It keeps the snapshot, of which
// nothing may change any more. nodes are the NUMA nodes on which the threads that
// poll run, as far as they are known; it may be nil.
func (s *State) Look(at time.Time, snap *verbs.Snapshot, nodes map[uint32]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks.add(at, snap, nodes) {
		s.slowest.forgetAfter(at.UnixMilli())
		s.ledger.forgetAfter(at.UnixMilli())
	}
}

// Equip takes what the node has.
func (s *State) Equip(m Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine = m
}

// Collect takes what is counted since the start and how functions are observed.
func (s *State) Collect(snap *verbs.Snapshot) {
	books, probes := booksOf(snap), probesOf(snap)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books, s.probes = books, probes
}

// Judge takes what was slow on queues, and why.
func (s *State) Judge(bursts []Burst) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range bursts {
		s.troubles.add(&bursts[i])
		s.ledger.add(&bursts[i])
	}
}

// Slow takes slow work requests.
func (s *State) Slow(requests []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range requests {
		s.slowest.add(&requests[i])
	}
}

// Tell takes an incident as it is now.
func (s *State) Tell(i Incident) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incidents.tell(i)
}

// View returns the state at a moment, with the columns of the heat map that ended
// after since, on the clock of the moments of a view.
func (s *State) View(now time.Time, since int64) View {
	s.mu.Lock()
	at := now.UnixMilli()
	v := View{
		At: at, Node: s.node, Tracing: s.tracing,
		Heatmap:   s.looks.heatmap.view(since),
		Incidents: s.incidents.view(at),
		Slowest:   s.slowest.view(at),
		Lost:      s.ledger.view(at),
		Machine:   s.machine,
		Probes:    s.probes, Books: s.books, Cost: s.cost.view(now),
	}
	table := s.looks.table()
	troubles := s.troubles.view(at)
	source := s.source
	s.mu.Unlock()
	// What the table is made of does not change any more, and to identify may wait.
	v.Queues = table.rows(&source, troubles)
	v.Now = table.pace(&v.Queues)
	return v
}

// NoView is the view where there is no state.
func NoView(now time.Time) View {
	v := NewState().View(now, 0)
	v.Tracing = Tracing{Phase: Absent}
	return v
}
