package tracer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Programs that have rdma-core linked in show no library. But the kernel knows
// every QP, also those that were there before the tracer, and by which address
// its process knows it: from there it is two steps to the functions that it posts
// and polls with.

const (
	// linkedInterval is how often it is looked for new QPs.
	linkedInterval = time.Second
	// mostTries is how often a process is looked at on a device as long as no ibv_qp
	// is filled in: once in each interval, at another of its QPs each time.
	mostTries = 5
	// mostLooksInTurn bounds how many processes are looked at in one interval.
	mostLooksInTurn = 64
	// forgetAfter is for how long what was seen of a process holds: what was out of
	// reach may be there by now, and what the finder knows of a file is lost when
	// anything about it changes. For one that is refused it doubles with each look, up
	// to longestWait: an analysis costs the most, and the same file fails again.
	forgetAfter = time.Minute
	longestWait = 16 * forgetAfter
)

// lookedKey is a process on a device: all QPs of a device have the functions of
// one driver.
type lookedKey struct {
	process verbs.ProcessID
	device  string
}

// sight is what a look at a process on a device has shown.
type sight int

const (
	sightNothing    sight = iota // not yet
	sightForNow                  // nothing more until it is forgotten
	sightRefused                 // its file cannot be traced, or the kernel does not probe it
	sightOutOfReach              // a read of it failed, was denied or did not end
	sightTryAgain                // the QP is not filled in
	sightLeftAlone               // never looked at again: it uses libraries, is left out, or its file was refused before
)

// looked is what is known of a process on a device.
type looked struct {
	last  sight
	tries int
	// turn is when it was last looked at, 0 for never.
	turn uint64
	// until is when what was seen is forgotten, wait how long that was from the look
	// on if the look was refused, and else 0.
	until time.Time
	wait  time.Duration
}

func (l looked) isDone() bool {
	return l.last != sightNothing && l.last != sightTryAgain || l.tries >= mostTries
}

// isDue says that it is to be looked at anew.
func (l looked) isDue(now time.Time) bool {
	return l.isDone() && l.last != sightLeftAlone && !now.Before(l.until)
}

// see takes down what a look has shown.
func (l *looked) see(seen sight, turn uint64, now time.Time) {
	l.last, l.turn = seen, turn
	l.tries++
	if !l.isDone() {
		return
	}
	switch seen {
	case sightRefused:
		l.wait = min(max(2*l.wait, forgetAfter), longestWait)
	case sightNothing, sightForNow, sightOutOfReach, sightTryAgain, sightLeftAlone:
		l.wait = 0
	}
	l.until = now.Add(max(l.wait, forgetAfter))
}

// linkedPrograms remembers what was looked at.
type linkedPrograms struct {
	known map[lookedKey]looked
	// turn counts the looks.
	turn uint64
	// taken is how many QPs there had been at the last look; again asks for another
	// one although there are no new ones.
	taken uint64
	again bool
}

// followLinked probes programs that have rdma-core linked in.
func (t *Tracer) followLinked(ctx context.Context) {
	programs := linkedPrograms{known: map[lookedKey]looked{}}
	every(ctx, linkedInterval, func() {
		programs.forget(time.Now())
		look := func(qp userQP) sight {
			if ctx.Err() != nil {
				return sightNothing
			}
			return t.lookAtQP(qp)
		}
		if err := programs.look(t.resources.taken(), t.resources.userQPs, look); err != nil {
			t.log.Warn("programs with libibverbs linked in are not looked for", "error", err)
		}
	})
}

// forget has processes looked at anew, each in its time, save for those that use
// libraries.
func (p *linkedPrograms) forget(now time.Time) {
	for key, l := range p.known {
		if l.isDue(now) {
			p.known[key] = looked{turn: l.turn, wait: l.wait}
			p.again = true
		}
	}
}

// look looks at a QP of every process and device that is not known yet, if so
// many QPs taken up by now can mean that there is one.
func (p *linkedPrograms) look(taken uint64, list func() ([]userQP, bool, error), lookAt func(userQP) sight) error {
	if taken == p.taken && !p.again {
		return nil
	}
	before := p.taken
	p.taken, p.again = taken, false
	qps, complete, err := list()
	if err != nil {
		p.again = true
		return err
	}
	// What came while the QPs were listed may be missing.
	p.again = !complete || taken != before
	present := map[lookedKey]looked{}
	looks := 0
	p.turn++
	// Whoever was longest not looked at comes first: looks may take so long that
	// the others are forgotten before all had theirs.
	slices.SortStableFunc(qps, func(a, b userQP) int {
		return cmp.Compare(p.known[lookedKey{a.process, a.device}].turn, p.known[lookedKey{b.process, b.device}].turn)
	})
	of := map[lookedKey][]userQP{}
	for _, qp := range qps {
		key := lookedKey{qp.process, qp.device}
		of[key] = append(of[key], qp)
	}
	for _, qp := range qps {
		key := lookedKey{qp.process, qp.device}
		if _, had := present[key]; had {
			continue
		}
		l := p.known[key]
		if !l.isDone() && looks < mostLooksInTurn {
			looks++
			seen := lookAt(of[key][l.tries%len(of[key])])
			l.see(seen, p.turn, time.Now())
		}
		present[key] = l
		p.again = p.again || !l.isDone()
	}
	p.known = present
	return nil
}

// lookAtQP probes the functions that a QP is used with, unless they are those of
// a library that is probed anyway.
func (t *Tracer) lookAtQP(qp userQP) sight {
	if !t.cfg.TakesDevice(qp.device) || !t.cfg.TakesProcess(int(qp.process.TGID)) {
		return sightLeftAlone
	}
	file, err := t.finder.Linked(int(qp.process.TGID), func(memory io.ReaderAt) (provider.Handles, error) {
		return handlesOf(memory, qp)
	})
	return t.follow(qp.process.TGID, file, err)
}

// follow acts on what the finder answers about the program of a process, and says
// what was seen of it.
func (t *Tracer) follow(tgid uint32, file *provider.File, err error) sight {
	switch {
	case errors.Is(err, errNotMadeYet):
		return sightTryAgain
	case errors.Is(err, provider.ErrContradiction):
		t.giveUp(file, err)
		return sightRefused
	case errors.Is(err, fs.ErrNotExist):
		return sightForNow // It has ended.
	case provider.Refused(err):
		t.warnings.warn(time.Now(), "a program with RDMA queue pairs is not traced: "+provider.RefusedFor(err).Error(), "pid", tgid, "error", err)
		return sightRefused
	case err != nil:
		t.missed.Add(1)
		t.notLookedInto(err, "pid", tgid)
		return sightOutOfReach
	case file == nil:
		return sightLeftAlone
	}
	if err := t.probe([]provider.File{*file}); err != nil {
		t.warnings.warn(time.Now(), "probing a program failed", "library", file.DisplayPath, "error", err)
		return sightRefused
	}
	return sightForNow
}

// giveUp takes the probes off a program whose processes contradict each other.
func (t *Tracer) giveUp(file *provider.File, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warnings.warn(time.Now(), "a program is not traced any more", "library", file.DisplayPath, "error", why)
	// A search that began before has the analysis of then, and may be about to probe.
	t.libraries.refuse(file.ID)
	a := t.libraries.attachments[keyOf(file.ID)]
	if t.closed || a == nil {
		return
	}
	a.resets = true
	if err := t.libraries.detach(a); err != nil {
		t.warnings.warn(time.Now(), "detaching from a program failed", "library", file.DisplayPath, "error", err)
	}
}
