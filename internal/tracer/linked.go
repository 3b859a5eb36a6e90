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
	// forgetInterval is how often what was found is forgotten: what was out of
	// reach may be there by now, and what the finder knows of a file is lost when
	// anything about it changes.
	forgetInterval = time.Minute
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
	sightNothing  sight = iota // not yet
	sightForNow                // nothing more until it is forgotten
	sightForEver               // nothing to probe here: libraries, found without, or what is left out or refused
	sightTryAgain              // the QP is not filled in
)

// looked is what is known of a process on a device. turn is when it was last looked
// at, 0 for never.
type looked struct {
	last  sight
	tries int
	turn  uint64
}

func (l looked) isDone() bool {
	return l.last == sightForNow || l.last == sightForEver || l.tries >= mostTries
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
	// forgotten is when what was found was last forgotten.
	forgotten time.Time
}

// followLinked probes programs that have rdma-core linked in.
func (t *Tracer) followLinked(ctx context.Context) {
	programs := linkedPrograms{known: map[lookedKey]looked{}, forgotten: time.Now()}
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

// forget has processes looked at anew, save for those that use libraries.
func (p *linkedPrograms) forget(now time.Time) {
	if now.Sub(p.forgotten) < forgetInterval {
		return
	}
	p.forgotten = now
	for key, l := range p.known {
		if l.last != sightForEver {
			p.known[key] = looked{turn: l.turn}
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
			l.turn = p.turn
			l.last = lookAt(of[key][l.tries%len(of[key])])
			l.tries++
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
		return sightForEver
	}
	file, err := t.finder.Linked(int(qp.process.TGID), func(memory io.ReaderAt) (provider.Handles, error) {
		return handlesOf(memory, qp)
	})
	switch {
	case errors.Is(err, errNotMadeYet):
		return sightTryAgain
	case errors.Is(err, provider.ErrContradiction):
		t.giveUp(file, err)
		return sightForNow
	case errors.Is(err, fs.ErrNotExist):
		return sightForNow // It has ended.
	case err != nil && provider.Refused(err):
		t.log.Warn("a program with RDMA queue pairs is not traced", "pid", qp.process.TGID, "error", err)
		return sightForNow
	case err != nil:
		t.missed.Add(1)
		t.notLookedInto(err, "pid", qp.process.TGID)
		return sightForNow
	case file == nil:
		return sightForEver
	}
	if err := t.probe([]provider.File{*file}); err != nil {
		t.log.Warn("probing a program failed", "library", file.DisplayPath, "error", err)
	}
	return sightForNow
}

// giveUp takes the probes off a program whose processes contradict each other.
func (t *Tracer) giveUp(file *provider.File, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log.Warn("a program is not traced any more", "library", file.DisplayPath, "error", why)
	// A search that began before has the analysis of then, and may be about to probe.
	t.libraries.refuse(file.ID)
	a := t.libraries.attachments[keyOf(file.ID)]
	if t.closed || a == nil {
		return
	}
	a.resets = true
	if err := t.libraries.detach(a); err != nil {
		t.log.Warn("detaching from a program failed", "library", file.DisplayPath, "error", err)
	}
}
