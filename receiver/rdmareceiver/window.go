package rdmareceiver

import (
	"context"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// countersPatience is how long after its end a window waits for the counters of
// the devices. With the second that it lasts, and a tenth to judge hundreds of queue
// pairs, a completion leaves within two.
const countersPatience = 900 * time.Millisecond

// glanceShare is how much longer than a glance takes there is none, while nothing
// is slow: with ten thousand queue pairs one takes tens of milliseconds.
const glanceShare = 50

// window is what happened in one selection window. There is one each second, also
// when nothing was slow: incidents end, and the metrics wait for it.
type window struct {
	// start and end are on CLOCK_MONOTONIC, in nanoseconds.
	start, end uint64
	// slow and stuck were chosen for export.
	slow  []verbs.Completion
	stuck []verbs.Stuck
	// bursts are all that was slow or stuck.
	bursts []*held
	// last is set on the last one that is judged, when the session ends. What comes
	// after that is unjudged: the metrics are through with it.
	last, unjudged bool
}

// dispatch judges what was slow, names the processes, which both may take a
// moment, and fills the outboxes.
func (s *session) dispatch(stop context.Context) {
	for w := range s.windows {
		s.handle(stop, &w)
	}
}

func (s *session) handle(stop context.Context, w *window) {
	var silent []idleProcess
	if !w.unjudged {
		looked := s.glance(len(w.bursts) > 0 || s.hangs.any())
		w.bursts = s.hangs.follow(w.bursts, &s.glances, w.end)
		if looked {
			silent = s.idle.look(s.glances.now)
		}
	}
	judged := s.judgeWindow(stop, w)
	s.accounting.add(w.start, w.end, judged)
	s.shown.judge(s, judged)
	events := s.eventsOf(w, judged)
	s.shown.slow(s, events)
	spans := s.putSpans(events)
	batch := s.logsOf(events, w.stuck)
	if !w.unjudged {
		batch.verdicts = s.foldIncidents(w, judged, silent, spans)
	}
	if batch.len() > 0 {
		s.logs.put(batch)
	}
	s.causes.reach(w.end)
	if w.last {
		close(s.settled)
	}
}

// judgeWindow judges every burst of a window, once, and notes the causes.
func (s *session) judgeWindow(stop context.Context, w *window) []judged {
	if w.unjudged {
		s.countUnjudged(w.bursts, unjudgedEnding)
		return nil
	}
	if len(w.bursts) == 0 {
		return nil
	}
	around := s.lookAround(stop, w)
	all := make([]judged, 0, len(w.bursts))
	for _, b := range w.bursts {
		all = append(all, s.judge.verdictsOn(b, around)...)
	}
	for i := range all {
		if b := &all[i]; b.over > 0 && b.verdict.Cause != causeUnknown {
			key := counterKey{b.queue.Process, b.device}
			s.causes.add(key, b.verdict.Cause, loss{count: b.over, excess: b.overLost})
		}
	}
	return all
}

// eventsOf names the processes of the completions that are exported, and gives
// each the verdict on its burst.
func (s *session) eventsOf(w *window, judged []judged) []slowEvent {
	of := make(map[verbs.QueueID][]int, len(judged))
	for i := range judged {
		of[judged[i].queue] = append(of[judged[i].queue], i)
	}
	events := make([]slowEvent, 0, len(w.slow))
	for _, c := range w.slow {
		why := diagnose.Verdict{Cause: causeUnknown}
		for _, i := range of[c.Queue] {
			if part := &judged[i]; part.only == nil || part.only(&c) {
				why = part.verdict
			}
		}
		events = append(events, newSlowEvent(c, s.identify(c.Queue.Process), why, &s.clock, s.cfg, s.ids))
	}
	return events
}

// foldIncidents puts the verdicts into their incidents, and returns what there is
// to tell of those.
func (s *session) foldIncidents(w *window, judged []judged, silent []idleProcess, spans spansByBurst) []verdictEvent {
	beyond, minor := s.judge.book.Beyond(), s.judge.book.Minor()
	for i := range judged {
		j := &judged[i]
		report := j.report(s.identify(j.queue.Process), spans[burstKey{j.queue, j.verdict.Cause}])
		s.judge.book.Fold(w.end, &report)
	}
	for i := range silent {
		s.foldSilence(w, &silent[i])
	}
	var records []incident.Record
	if w.last {
		records = s.judge.book.Close(w.end)
	} else {
		records = s.judge.book.Step(w.end)
	}
	s.self.countBeyond(s.judge.book.Beyond() - beyond)
	s.self.countMinor(s.judge.book.Minor() - minor)
	active := s.judge.book.Active()
	s.active.Store(&active)
	s.shown.tell(s, records)
	return s.verdictsOf(records, w.end)
}

// foldSilence judges a silence. One that no cause explains is no incident: it may
// be that there is nothing to do.
func (s *session) foldSilence(w *window, p *idleProcess) {
	around := s.sceneOf(w)
	burst := around.silenceOf(p)
	verdict := diagnose.Judge(&burst, s.judge.causes)
	if verdict.Cause == causeUnknown {
		return
	}
	verdict.Confidence = min(verdict.Confidence, diagnose.Likely)
	who := s.identify(p.key.process)
	s.judge.book.Fold(w.end, &incident.Report{
		Verdict: verdict, Device: p.key.device, Queue: verbs.QueueID{Process: p.key.process},
		Rank: who.facts.Rank, Name: nameOf(p.key.process, who),
		First: p.idle.Since, Last: w.end, Idle: p.idle.For,
	})
}

// burstKey tells the bursts of a window apart.
type burstKey struct {
	queue verbs.QueueID
	cause string
}

type spansByBurst map[burstKey][]incident.Span

// putSpans passes spans on to their pipeline, and returns those that are on their way
// to it: a verdict must not lead to others.
func (s *session) putSpans(events []slowEvent) spansByBurst {
	spans := spansByBurst{}
	if !s.pipelines.traces.wanted || len(events) == 0 || !s.traces.put(events) {
		return spans
	}
	for i := range events {
		e := &events[i]
		of := burstKey{e.completion.Queue, e.verdict.Cause}
		spans[of] = append(spans[of], incident.Span{TraceID: e.traceID, SpanID: e.spanID, Duration: e.completion.Duration()})
	}
	return spans
}

// verdictsOf names the processes of incidents that are of one.
func (s *session) verdictsOf(records []incident.Record, now uint64) []verdictEvent {
	if !s.wantsVerdictLogs() {
		return nil
	}
	events := make([]verdictEvent, 0, len(records))
	for i := range records {
		e := newVerdictEvent(records[i], s.judge.title, &s.clock, now)
		if id := records[i].Incident.Process; id != (verbs.ProcessID{}) {
			e.process = s.identify(id)
		}
		events = append(events, e)
	}
	return events
}

// lookAround gathers what went on around a window. Counters are to be read once
// more after its end, which may take until the window has to go out.
func (s *session) lookAround(stop context.Context, w *window) *scene {
	for _, b := range w.bursts {
		for i := range b.slow {
			s.glances.seen(&b.slow[i])
		}
	}
	if s.devices != nil && !w.last {
		age := time.Duration(s.monotonic() - w.end)
		patience, cancel := context.WithTimeout(stop, countersPatience-age)
		s.devices.await(patience, w.end)
		cancel()
	}
	return s.sceneOf(w)
}

func (s *session) sceneOf(w *window) *scene {
	return &scene{
		start: w.start, end: w.end, glances: &s.glances, quotas: &s.quotas, steals: &s.steals, idleStates: &s.idleStates,
		threads: s.host.threads, scheduling: s.engine.Scheduling, stamped: s.cfg.CQETimestamps,
		devices: s.devices, topology: s.host.topology,
		events: s.events.since(w.start),
	}
}

// glance looks at the queues, and says whether it did. While nothing is slow it
// takes no more than its share of the time.
func (s *session) glance(slow bool) bool {
	began := time.Now()
	if !slow && began.Before(s.nextGlance) {
		return false
	}
	defer func() { s.nextGlance = began.Add(glanceShare * time.Since(began)) }()
	snap, err := s.engine.Glance(slow || s.shown.watched())
	if err != nil {
		s.glances.skip()
		return false
	}
	s.glances.add(&snap)
	s.shown.look(s, &snap)
	s.quotas.look(&snap)
	s.steals.look(snap.Monotonic, slow)
	return true
}

// countUnjudged counts what was slow, failed or stuck and is not judged.
func (s *session) countUnjudged(bursts []*held, why string) {
	n := 0
	for _, b := range bursts {
		n += int(b.reported + b.stuckCount)
	}
	s.self.countUnjudged(n, why)
}
