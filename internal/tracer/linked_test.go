package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// looker lists QPs and counts the looks at them.
type looker struct {
	programs linkedPrograms
	qps      []userQP
	missing  bool
	err      error
	shows    map[lookedKey]sight
	looks    map[lookedKey]int
}

func newLooker() *looker {
	return &looker{programs: linkedPrograms{known: map[lookedKey]looked{}}, shows: map[lookedKey]sight{}}
}

func keyFor(tgid uint32, device string) lookedKey {
	return lookedKey{verbs.ProcessID{TGID: tgid}, device}
}

func (l *looker) add(key lookedKey, number uint32, shows sight) {
	l.qps = append(l.qps, userQP{process: key.process, device: key.device, number: number})
	l.shows[key] = shows
}

// look looks after so many QPs were taken up, and expects so many looks at each.
func (l *looker) look(t *testing.T, taken uint64, want map[lookedKey]int) {
	t.Helper()
	l.looks = map[lookedKey]int{}
	list := func() ([]userQP, bool, error) { return l.qps, !l.missing, l.err }
	err := l.programs.look(taken, list, func(qp userQP) sight {
		key := lookedKey{qp.process, qp.device}
		l.looks[key]++
		return l.shows[key]
	})
	if !errors.Is(err, l.err) {
		t.Fatal(err)
	}
	if !maps.Equal(l.looks, want) {
		t.Errorf("with %d taken up, looks at %v, want %v", taken, l.looks, want)
	}
}

// later forgets what is forgotten so long after the last look.
func (l *looker) later(wait time.Duration) {
	l.programs.forget(time.Now().Add(wait))
}

// expectWait expects that what was just seen of a process holds for so long.
func (l *looker) expectWait(t *testing.T, key lookedKey, want time.Duration) {
	t.Helper()
	// The look was a moment ago, and the shortest waits are a minute apart.
	if rest := time.Until(l.programs.known[key].until); rest > want || rest <= want-forgetAfter/2 {
		t.Errorf("it is forgotten in %v, want %v", rest, want)
	}
}

// A process on a device is looked at until its functions are known, and then not
// again for as long as it has QPs.
func TestLinkedProgramsAreLookedAtOnce(t *testing.T) {
	l := newLooker()
	first, second, third := keyFor(1, "rxa"), keyFor(1, "rxb"), keyFor(2, "rxa")
	l.look(t, 0, nil)
	l.add(first, 17, sightForNow)
	l.add(first, 18, sightForNow)
	l.add(second, 17, sightLeftAlone)
	l.look(t, 3, map[lookedKey]int{first: 1, second: 1})
	l.look(t, 3, nil)

	// Of another one, the QP is not filled in at first.
	l.add(third, 19, sightTryAgain)
	for range 2 {
		l.look(t, 4, map[lookedKey]int{third: 1})
	}
	l.shows[third] = sightForNow
	l.look(t, 4, map[lookedKey]int{third: 1})
	l.look(t, 4, nil)

	// Who has no QP any more is forgotten.
	l.qps = l.qps[:1]
	l.look(t, 5, nil)
	if len(l.programs.known) != 1 {
		t.Errorf("%v are remembered", l.programs.known)
	}
}

// One whose QP is never filled in is left alone, and looked at again later, as is
// what was found or out of reach; who uses libraries is not.
func TestLinkedProgramsAreForgotten(t *testing.T) {
	l := newLooker()
	never, linked, library := keyFor(1, "rxa"), keyFor(2, "rxa"), keyFor(3, "rxa")
	l.add(never, 17, sightTryAgain)
	l.add(linked, 18, sightForNow)
	l.add(library, 19, sightLeftAlone)
	l.look(t, 3, map[lookedKey]int{never: 1, linked: 1, library: 1})
	for range mostTries - 1 {
		l.look(t, 3, map[lookedKey]int{never: 1})
	}
	l.look(t, 3, nil)
	l.later(forgetAfter)
	l.look(t, 3, map[lookedKey]int{never: 1, linked: 1})
	l.later(forgetAfter / 2)
	l.look(t, 3, map[lookedKey]int{never: 1})
}

// One that is refused waits longer each time, up to a bound and for itself alone, and
// from the beginning once it was found.
func TestRefusedProgramsWaitForThemselves(t *testing.T) {
	l := newLooker()
	found, refused, late := keyFor(1, "rxa"), keyFor(2, "rxa"), keyFor(3, "rxa")
	l.add(found, 17, sightForNow)
	l.add(refused, 18, sightRefused)
	l.look(t, 2, map[lookedKey]int{found: 1, refused: 1})
	l.look(t, 2, nil)
	for wait := forgetAfter; wait < longestWait; wait *= 2 {
		l.expectWait(t, found, forgetAfter)
		l.expectWait(t, refused, wait)
		l.later(wait)
		l.look(t, 2, map[lookedKey]int{found: 1, refused: 1})
	}
	l.add(late, 19, sightRefused)
	l.look(t, 3, map[lookedKey]int{late: 1})
	l.expectWait(t, late, forgetAfter)
	for range 2 {
		l.expectWait(t, refused, longestWait)
		l.later(longestWait)
		l.look(t, 3, map[lookedKey]int{found: 1, refused: 1, late: 1})
	}

	l.shows[refused] = sightForNow
	l.later(longestWait)
	l.look(t, 3, map[lookedKey]int{found: 1, refused: 1, late: 1})
	l.expectWait(t, refused, forgetAfter)
}

// What is out of reach, or not filled in, may be there at any time: it never waits
// longer than at first.
func TestProgramsOutOfReachAreLookedAtEachMinute(t *testing.T) {
	l := newLooker()
	outOfReach, never := keyFor(1, "rxa"), keyFor(2, "rxa")
	l.add(outOfReach, 17, sightOutOfReach)
	l.add(never, 18, sightTryAgain)
	for range 6 {
		l.look(t, 2, map[lookedKey]int{outOfReach: 1, never: 1})
		for range mostTries - 1 {
			l.look(t, 2, map[lookedKey]int{never: 1})
		}
		l.look(t, 2, nil)
		l.expectWait(t, outOfReach, forgetAfter)
		l.expectWait(t, never, forgetAfter)
		l.later(forgetAfter)
	}
}

// However many processes there are, a turn looks at some of them, and none is left
// out; nor is what was missing from a list.
func TestLooksAreBounded(t *testing.T) {
	l := newLooker()
	for tgid := range uint32(mostLooksInTurn + 1) {
		l.add(keyFor(tgid+1, "rxa"), tgid, sightLeftAlone)
	}
	seen := map[lookedKey]int{}
	for turn, want := range []int{mostLooksInTurn, 1, 0} {
		l.looks = map[lookedKey]int{}
		list := func() ([]userQP, bool, error) { return l.qps, true, nil }
		if err := l.programs.look(1, list, func(qp userQP) sight {
			seen[lookedKey{qp.process, qp.device}]++
			l.looks[lookedKey{qp.process, qp.device}]++
			return sightLeftAlone
		}); err != nil {
			t.Fatal(err)
		}
		if len(l.looks) != want {
			t.Errorf("turn %d looked at %d, want %d", turn, len(l.looks), want)
		}
	}
	if len(seen) != mostLooksInTurn+1 {
		t.Errorf("%d of %d were looked at", len(seen), mostLooksInTurn+1)
	}

	late := keyFor(1000, "rxa")
	l.missing = true
	l.look(t, 2, nil)
	l.look(t, 2, nil)
	l.missing = false
	l.add(late, 1, sightForNow)
	l.look(t, 2, map[lookedKey]int{late: 1})

	l.err = fmt.Errorf("no map")
	l.look(t, 3, nil)
	l.err = nil
	later := keyFor(1001, "rxa")
	l.add(later, 1, sightForNow)
	l.look(t, 3, map[lookedKey]int{later: 1})
}

// Processes whose looks take so long that they are forgotten meanwhile do not keep
// the others from theirs.
func TestLooksReachEverybody(t *testing.T) {
	l := newLooker()
	for tgid := range uint32(mostLooksInTurn) {
		l.add(keyFor(tgid+1, "rxa"), tgid, sightForNow)
	}
	last := keyFor(1000, "rxa")
	l.add(last, 1000, sightForNow)
	now := time.Now()
	list := func() ([]userQP, bool, error) { return slices.Clone(l.qps), true, nil }
	seen := false
	for range 2 {
		if err := l.programs.look(1, list, func(qp userQP) sight {
			seen = seen || qp.process == last.process
			return sightForNow
		}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * forgetAfter)
		l.programs.forget(now)
	}
	if !seen {
		t.Error("one of them was never looked at")
	}
}

// A QP that is not filled in does not use up the tries of its process at once, and
// the next look is at another one.
func TestLooksTakeTurnsAmongQPs(t *testing.T) {
	l := newLooker()
	key := keyFor(1, "rxa")
	l.add(key, 17, sightTryAgain)
	l.add(key, 18, sightTryAgain)
	list := func() ([]userQP, bool, error) { return slices.Clone(l.qps), true, nil }
	var numbers []uint32
	for range 2 {
		if err := l.programs.look(1, list, func(qp userQP) sight {
			numbers = append(numbers, qp.number)
			return sightTryAgain
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(numbers, []uint32{17, 18}) {
		t.Errorf("looked at QPs %v", numbers)
	}
}
