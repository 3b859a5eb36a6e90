package rdmareceiver

import (
	"maps"
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/incident"
)

// causeUnknown is the value of rdma.slow.cause where nothing proves a cause.
const causeUnknown = diagnose.Unknown

// causeBook shares out what the kernel side counts as slow among the causes that
// were found. The kernel side counts more than it reports, and so its counts are
// what is exported: each slow completion in them is of one cause once, and what
// no cause was found of is unknown.
//
// A completion may be judged and not be in the counts yet. Its cause is kept for
// the next snapshot, and not longer.
type causeBook struct {
	fresh, left map[counterKey]lossByCause
}

// add takes causes that were found since the last snapshot.
func (b *causeBook) add(found map[counterKey]lossByCause) {
	b.left, b.fresh = b.fresh, found
}

// share says what is of which cause; counted is what the kernel side counted since
// the last snapshot. The parts add up to it.
func (b *causeBook) share(key counterKey, counted loss) lossByCause {
	parts := lossByCause{}
	rest := counted
	for _, found := range []lossByCause{b.left[key], b.fresh[key]} {
		for _, cause := range slices.Sorted(maps.Keys(found)) {
			part := found[cause].upTo(rest)
			rest = rest.minus(part)
			found[cause] = found[cause].minus(part)
			parts[cause] = parts[cause].plus(part)
		}
	}
	parts[causeUnknown] = parts[causeUnknown].plus(rest)
	return parts
}

// addSlow shares out the slow completions that the snapshot counted.
func (a *aggregator) addSlow(counted map[counterKey]loss) {
	for key, increase := range counted {
		at := seriesKey{owner: a.ownerOf(key.process), device: key.device}
		for cause, part := range a.causes.share(key, increase) {
			if cause == causeUnknown || part != (loss{}) {
				a.count(at.with(wqeSlowCompletions, cause), part.count)
				a.count(at.with(wqeExcessTime, cause), nanoseconds(part.excess))
			}
		}
	}
}

// addIncidents notes how many incidents are open, which are the host's: several
// jobs may be in one.
//
// What had some and has none is told to be 0 once before it ends: who does not know
// the end of a series would see the incident go on.
func (a *aggregator) addIncidents() {
	at := func(key incident.Key) seriesKey {
		return seriesKey{ofHost: true, device: key.Device}.with(activeIncidents, key.Cause)
	}
	for key := range a.wereActive {
		a.set(at(key), 0)
	}
	for key, n := range a.active {
		a.set(at(key), int64(n))
	}
	a.wereActive = a.active
}

// foundSince is what was found out since the last snapshot.
func (a *aggregator) foundSince(found map[counterKey]lossByCause, active map[incident.Key]int) {
	a.causes.add(found)
	a.active = active
}
