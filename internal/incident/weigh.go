package incident

import "time"

// Least is what has to happen within Gathering of the first report for an incident to
// be told of, so that a request or two on a busy machine are none. Either is enough.
// What failed, does not complete or fell silent is an incident at once, and the zero
// value lets everything be one.
type Least struct {
	// Occasions is how often something was slow, Late for how long.
	Occasions uint64
	Late      time.Duration
	Gathering time.Duration
}

// gathered is what speaks for an incident so far.
type gathered struct {
	// before is of earlier times, present of the one that folded is.
	before, present amount
	// grave is set by what is an incident by itself.
	grave bool
}

type amount struct {
	occasions uint64
	late      time.Duration
}

// add takes a report in. Reports of one moment are of queue pairs that were slow at
// the same time: what held up one thread or device is one occasion for all of them.
func (g *gathered) add(r *Report, sameMoment bool) {
	if !sameMoment {
		g.before = amount{g.before.occasions + g.present.occasions, g.before.late + g.present.late}
		g.present = amount{}
	}
	g.present = amount{max(g.present.occasions, r.Occasions), max(g.present.late, r.Late)}
	g.grave = g.grave || r.Failed > 0 || r.Stuck > 0 || r.Oldest > 0 || r.Idle > 0
}

func (g *gathered) enough(least *Least) bool {
	return g.grave ||
		g.before.occasions+g.present.occasions >= least.Occasions ||
		least.Late > 0 && g.before.late+g.present.late >= least.Late
}
