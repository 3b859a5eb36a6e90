package rdmareceiver

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// How incidents are kept.
const (
	// incidentSilence is how long nothing may be slow before an incident is over.
	incidentSilence = 10 * time.Second
	// incidentHolding is for how long an incident without a cause may become that of
	// one.
	incidentHolding = 5 * time.Second
	// incidentOccasions is how often something has to be slow within incidentGathering
	// to be an incident, incidentLate for how long, if less often.
	incidentOccasions = 3
	incidentLate      = 50 * time.Millisecond
	incidentGathering = 2 * time.Second
	// incidentPatience is how long one without a cause is kept back. With the two
	// seconds that a completion is held, and the second of a window, that is within
	// the five seconds in which a verdict is due.
	incidentPatience = 2 * time.Second
	// incidentRepeat is the least time between two updates that bring nothing but
	// counts.
	incidentRepeat = 10 * time.Second
	// maxIncidents bounds the incidents that are open at once.
	maxIncidents = 64
)

// judge says why the bursts of a window were slow, and keeps the incidents. It is
// not safe for concurrent use.
type judge struct {
	causes []diagnose.Cause
	byName map[string]*diagnose.Cause
	book   *incident.Book
	// peerAddresses lets addresses of peers into what causes see, and so into what
	// they say.
	peerAddresses bool
}

func newJudge(causes []diagnose.Cause, peerAddresses bool, ids idSource) *judge {
	j := &judge{causes: causes, byName: map[string]*diagnose.Cause{}, peerAddresses: peerAddresses}
	for i := range causes {
		j.byName[causes[i].Name] = &causes[i]
	}
	j.book = incident.New(incident.Config{
		Silence: incidentSilence, Holding: incidentHolding, Patience: incidentPatience, Repeat: incidentRepeat, MaxOpen: maxIncidents,
		Least:      incident.Least{Occasions: incidentOccasions, Late: incidentLate, Gathering: incidentGathering},
		PerProcess: j.perProcess,
		NewID:      func() string { return newIncidentID(ids) },
	})
	return j
}

func newIncidentID(ids idSource) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], ids.Uint64())
	return hex.EncodeToString(raw[:])
}

func (j *judge) perProcess(cause string) bool {
	c := j.byName[cause]
	return c != nil && c.PerProcess
}

// title is what people call a cause.
func (j *judge) title(cause string) string {
	if c := j.byName[cause]; c != nil {
		return c.Title
	}
	return cause
}

// judged is a burst and the verdict on it.
type judged struct {
	*held
	verdict diagnose.Verdict
	normal  time.Duration
	// only is set where the burst is part of one, and says of the completions of
	// that which are in it.
	only func(*verbs.Completion) bool
}

// verdictsOn judges a burst. What its cause excludes is a burst of its own, of which
// a cause is at most possible: that of the others was at work at the same time.
func (j *judge) verdictsOn(b *held, around *scene) []judged {
	whole := j.verdictOn(b, around)
	cause := j.byName[whole.verdict.Cause]
	if cause == nil {
		return []judged{whole}
	}
	rest, apart := b.divide(cause.Excludes)
	if apart == nil {
		return []judged{whole}
	}
	other := j.verdictOn(apart, around)
	if other.verdict.Cause == cause.Name {
		return []judged{whole}
	}
	whole.held = rest
	other.only = cause.Excludes
	other.verdict.Confidence = min(other.verdict.Confidence, diagnose.Possible)
	return []judged{whole, other}
}

// verdictOn judges a burst.
func (j *judge) verdictOn(b *held, around *scene) judged {
	burst := around.burstOf(b)
	if !j.peerAddresses {
		hidePeers(&burst)
	}
	done := judged{held: b, verdict: diagnose.Judge(&burst, j.causes)}
	if burst.Baseline != nil {
		done.normal = burst.Baseline.Median
	}
	return done
}

// hidePeers takes the addresses of peers from the requests, so that no cause can
// name them. The burst has requests of its own.
func hidePeers(b *diagnose.Burst) {
	hide := func(p *verbs.Path) { p.RemoteGID, p.RemoteLID = verbs.GID{}, 0 }
	for i := range b.Slow {
		hide(&b.Slow[i].Path)
	}
	for i := range b.Stuck {
		hide(&b.Stuck[i].Path)
	}
	if b.Queue != nil {
		queue := *b.Queue
		hide(&queue.Path)
		b.Queue = &queue
	}
}

// report is what an incident has to know of it.
func (d *judged) report(who *identity, spans []incident.Span) incident.Report {
	return incident.Report{
		Verdict: d.verdict, Device: d.device, Port: d.port, Queue: d.queue,
		Rank: who.facts.Rank, Name: nameOf(d.queue.Process, who),
		First: d.first, Last: d.last,
		Slow: d.reported, Excess: d.lost, Occasions: d.occasions, Late: d.late, Failed: d.failed, Worst: d.worst, Normal: d.normal,
		Stuck: d.stuckCount, Oldest: d.oldest, Spans: spans,
	}
}

// nameOf is what people call a process, or a consumer in the kernel.
func nameOf(id verbs.ProcessID, who *identity) string {
	switch {
	case id.InKernel():
		return who.job.service
	case who.facts.Executable != "":
		return who.facts.Executable
	default:
		return who.facts.Name
	}
}
