package process

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// ErrBusy is wrapped when the facts are not there in time: the kernel makes
// readers wait while a process keeps its memory locked.
var ErrBusy = errors.New("the facts of the process are still being read")

const (
	// patience is how long one process may be waited for, in all.
	patience = time.Second
	// maxReading bounds the processes read at a time, and with them the
	// threads that can hang in the kernel.
	maxReading = 32
	// failureAge is how long a failure is believed that may pass.
	failureAge = 30 * time.Second
)

// Cache keeps the facts of processes as they were when first asked for, so
// that they outlive the process: its slow work is often exported after its
// end. It is safe for concurrent use.
//
// The key is the incarnation, not the PID: after an execve, and when a PID is
// reused, the facts are read anew. Facts of another process, which has the PID by
// then, are never returned: the one asked for has gone. That is kept too, because
// whatever has its PID later is another process. Other failures are tried again
// after a while, in the background: nobody waits for one process twice.
type Cache struct {
	read     func(pid int) (Facts, error)
	capacity int
	reading  chan struct{}

	mu      sync.Mutex
	entries map[verbs.ProcessID]*list.Element
	// recent has the entry used last in front; its values are *entry.
	recent *list.List
}

// entry is one process. Facts and err may be read once done is closed.
type entry struct {
	id       verbs.ProcessID
	deadline time.Time
	done     chan struct{}
	facts    Facts
	err      error
	// name is the comm of the process, "" unless the kernel told it. It needs
	// the Cache's mu.
	name string
	// stale is from when the process is to be read again, zero for never. The
	// cache's mu guards it.
	stale time.Time
}

// NewCache returns a Cache of at most capacity processes, at least 1; beyond
// it the one not used for longest is dropped.
func NewCache(reader *Reader, capacity int) *Cache {
	return &Cache{
		read:     reader.Facts,
		capacity: max(capacity, 1),
		reading:  make(chan struct{}, maxReading),
		entries:  map[verbs.ProcessID]*list.Element{},
		recent:   list.New(),
	}
}

// Capture starts reading the facts of a process, if that was not done before,
// and returns at once. Name is what the kernel calls the process, "" if that is
// not known: the name of one that is gone before its facts are read.
func (c *Cache) Capture(id verbs.ProcessID, name string) {
	e := c.entry(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != "" {
		e.name = clean(name)
	}
}

// Facts returns the facts of a process as Reader.Facts does, from the first
// time it was asked for. It waits at most a second in all for one process;
// then the error wraps ErrBusy, and a later call may have the facts. Of a
// process that was gone too soon only the name may be known.
func (c *Cache) Facts(id verbs.ProcessID) (Facts, error) {
	e := c.entry(id)
	select {
	case <-e.done:
		return c.of(e)
	default:
	}
	timer := time.NewTimer(time.Until(e.deadline))
	defer timer.Stop()
	select {
	case <-e.done:
		return c.of(e)
	case <-timer.C:
		return Facts{}, fmt.Errorf("process %d: %w", id.TGID, ErrBusy)
	}
}

// of returns the facts of an entry that is done.
func (c *Cache) of(e *entry) (Facts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.Is(e.err, ErrGone) || e.name == "" {
		return e.facts, e.err
	}
	facts := Facts{PID: int(e.id.TGID), Executable: e.name, Name: e.name, ServiceName: e.name}
	return facts, fmt.Errorf("%w: %w", ErrIncomplete, e.err)
}

func (c *Cache) entry(id verbs.ProcessID) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	element, known := c.entries[id]
	if !known {
		return c.add(id, now.Add(patience))
	}
	e := element.Value.(*entry)
	if !e.stale.IsZero() && now.After(e.stale) {
		c.drop(element)
		again := c.add(id, now)
		again.name = e.name
		return again
	}
	c.recent.MoveToFront(element)
	return e
}

// add needs mu.
func (c *Cache) add(id verbs.ProcessID, deadline time.Time) *entry {
	if c.recent.Len() >= c.capacity {
		c.drop(c.recent.Back())
	}
	e := &entry{id: id, deadline: deadline, done: make(chan struct{})}
	c.entries[id] = c.recent.PushFront(e)
	go c.fill(e)
	return e
}

// drop needs mu. A read under way goes on, for those who wait for it.
func (c *Cache) drop(element *list.Element) {
	delete(c.entries, element.Value.(*entry).id)
	c.recent.Remove(element)
}

// fill reads the facts. When every slot hangs it gives up, so that no more
// goroutines pile up behind them.
func (c *Cache) fill(e *entry) {
	defer close(e.done)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
		e.facts, e.err = c.readOf(e.id)
	case <-timer.C:
		e.err = fmt.Errorf("process %d: %w: %d others are being waited for", e.id.TGID, ErrBusy, maxReading)
	}
	if e.err != nil && !errors.Is(e.err, ErrIncomplete) && !errors.Is(e.err, ErrGone) {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.stale = time.Now().Add(failureAge)
	}
}

// readOf reads the facts of a process, not those of another one with its PID.
func (c *Cache) readOf(id verbs.ProcessID) (Facts, error) {
	facts, err := c.read(int(id.TGID))
	if (err == nil || errors.Is(err, ErrIncomplete)) && !startedAs(id, facts.StartTicks) {
		return Facts{}, fmt.Errorf("process %d: %w: its process id was reused", id.TGID, ErrGone)
	}
	return facts, err
}

// startedAs compares an incarnation with a start time. The incarnation is the
// time in nanoseconds plus the number of the exec, which may lift it into the
// next tick; no PID is used again that soon. In a time namespace with an offset
// of its own the reader sees other times than the kernel counts, and no names.
func startedAs(id verbs.ProcessID, startTicks uint64) bool {
	ticks := id.Incarnation / uint64(tick)
	return ticks == startTicks || ticks == startTicks+1
}
