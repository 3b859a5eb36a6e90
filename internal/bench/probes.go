package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// warmUp is how long each number of the loop is run before it is measured, so
// that an observer has met the library and its functions under traffic.
const warmUp = 5 * time.Millisecond

// patience is how long the whole benchmark waits for other observers of the
// measured library to go away.
const patience = 90 * time.Second

// mode is one way of being observed, and its measurements.
type mode struct {
	name     string
	observer observer
	poll     map[string][]float64
	post     []float64
	attach   []float64
	detach   []float64
}

func newMode(name string, o observer) *mode {
	return &mode{name: name, observer: o, poll: map[string][]float64{}}
}

func (m *mode) add(r loopResult) {
	for n, ns := range r.PollNs {
		m.poll[n] = append(m.poll[n], ns)
	}
	m.post = append(m.post, r.PostNs)
}

// measureProbes measures every mode in every round, so that what disturbs the
// machine disturbs all alike.
func (b *bench) measureProbes(ctx context.Context, r *result) error {
	holder, err := b.startHolder(ctx)
	if err != nil {
		return err
	}
	defer holder.close()
	where, err := findFunctions(holder.pid(), b.library)
	if err != nil {
		return err
	}
	places, err := b.inspectTracer(ctx, r)
	if err != nil {
		return err
	}
	modes := []*mode{
		newMode(modeUntraced, nobody{}),
		newMode(modeBare, &bareObserver{library: b.library, places: places}),
		newMode(modeOurs, shipped(b.library)),
	}
	if returnsFrom(places, where.pollCQ) {
		b.note("the tracer stands at the return of poll_cq: ours is entry and return")
	}
	if returnsFrom(places, where.postSend) {
		b.note("the tracer stands at the return of post_send")
	}
	modes = append(modes, newMode(modeEntryReturn, entryAndReturn(b.library)))
	trace := &bpftraceObserver{script: bpftraceScript(b.library, where)}
	if err := trace.attach(ctx); err != nil {
		b.note("bpftrace is missing: %v", err)
	} else {
		// An error here is that it saw nothing, as there was nothing.
		_ = trace.detach()
		modes = append(modes, newMode(modeBpftrace, trace))
	}
	if err := b.rounds(ctx, modes, r); err != nil {
		return err
	}
	fill(r, modes)
	return nil
}

// settleLimit bounds how long an observer may take to come to rest.
const settleLimit = 20 * time.Second

// settle lets traffic flow until the observer has come to rest.
func (b *bench) settle(ctx context.Context, o observer) error {
	s, ok := o.(settler)
	if !ok {
		return nil
	}
	for begin := time.Now(); time.Since(begin) < settleLimit; {
		done, err := s.settled()
		if done || err != nil {
			return err
		}
		if _, err := b.runLoop(ctx, warmUp); err != nil {
			return err
		}
	}
	return fmt.Errorf("the tracer has not come to rest on %s within %s", b.library, settleLimit)
}

// inspectTracer attaches the tracer once, to learn where it comes to stand when
// it has seen traffic, and what its programs cost by the kernel's own clock.
func (b *bench) inspectTracer(ctx context.Context, r *result) ([]place, error) {
	o := shipped(b.library)
	if err := o.attach(ctx); err != nil {
		return nil, err
	}
	if err := b.settle(ctx, o); err != nil {
		return nil, errors.Join(err, o.detach())
	}
	places, err := b.settledPlaces(ctx)
	if err == nil {
		r.Probes, err = describe(places)
	}
	if err == nil {
		r.Programs, err = b.programCosts(ctx)
	}
	if err == nil {
		var sampled error
		if r.Profile, sampled = b.profile(ctx); sampled != nil {
			b.note("no profile: %v", sampled)
		}
	}
	return places, errors.Join(err, o.detach())
}

// settledPlaces lets traffic flow until the tracer does not move any more.
func (b *bench) settledPlaces(ctx context.Context) ([]place, error) {
	const limit, calm = 20, 2
	var last []place
	for same, i := 0, 0; i < limit; i++ {
		if _, err := b.runLoop(ctx, warmUp); err != nil {
			return nil, err
		}
		all, err := placesOn(b.library, self)
		if err != nil {
			return nil, err
		}
		now := own(all)
		if len(now) > 0 && sameLinks(last, now) {
			same++
		} else {
			same = 0
		}
		if last = now; same == calm {
			return now, nil
		}
	}
	return nil, fmt.Errorf("the tracer attaches and detaches on %s without an end", b.library)
}

// programCosts lets the kernel time the programs of this process while the
// loop runs. It is apart from the other measurements because it costs time.
func (b *bench) programCosts(ctx context.Context) ([]programResult, error) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return nil, fmt.Errorf("letting the kernel time BPF programs: %w", err)
	}
	defer stats.Close()
	if _, err := b.runLoop(ctx, b.schedule.cell); err != nil {
		return nil, err
	}
	objects, err := objectsOf(self)
	if err != nil {
		return nil, err
	}
	var costs []programResult
	for id := range objects.programs {
		cost, err := programCost(ebpf.ProgramID(id))
		if err != nil {
			return nil, err
		}
		if cost.RunCount > 0 {
			costs = append(costs, cost)
		}
	}
	return sortPrograms(costs), nil
}

func programCost(id ebpf.ProgramID) (programResult, error) {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return programResult{}, fmt.Errorf("opening BPF program %d: %w", id, err)
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return programResult{}, err
	}
	stats, err := program.Stats()
	if err != nil {
		return programResult{}, err
	}
	cost := programResult{Name: info.Name, RunCount: stats.RunCount}
	if stats.RunCount > 0 {
		cost.NsPerRun = float64(stats.Runtime.Nanoseconds()) / float64(stats.RunCount)
	}
	return cost, nil
}

// describe names the programs of places; they must be attached still.
func describe(places []place) ([]placeResult, error) {
	var described []placeResult
	for _, p := range places {
		program, err := programCost(p.program)
		if err != nil {
			return nil, err
		}
		for _, offset := range p.offsets {
			described = append(described, placeResult{Program: program.Name, Offset: offset, Return: p.isReturn})
		}
	}
	return described, nil
}

// rounds measures every mode in turn until the time is over, the first mode of
// a round being another one each time.
func (b *bench) rounds(ctx context.Context, modes []*mode, r *result) error {
	b.progress("what is observed: %d modes side by side, for about %s", len(modes), b.schedule.probes)
	waiting := &waiting{left: patience}
	begin := time.Now()
	end := begin.Add(b.schedule.probes)
	for ; r.Rounds < minRounds || time.Now().Before(end); r.Rounds++ {
		for i := range modes {
			m := modes[(r.Rounds+i)%len(modes)]
			if err := b.measureMode(ctx, m, waiting); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	b.progress("%d rounds in %s", r.Rounds, time.Since(begin).Round(time.Second))
	return nil
}

// measureMode is one measurement of a mode, again when somebody else observed
// the library meanwhile.
func (b *bench) measureMode(ctx context.Context, m *mode, w *waiting) error {
	for {
		if err := b.awaitQuiet(ctx, w); err != nil {
			return err
		}
		measured, disturbed, err := b.observed(ctx, m)
		if err != nil {
			return err
		}
		if disturbed && w.left > 0 {
			w.left -= time.Second
			continue
		}
		m.add(measured)
		return nil
	}
}

func (b *bench) observed(ctx context.Context, m *mode) (measured loopResult, disturbed bool, err error) {
	begin := time.Now()
	if err := m.observer.attach(ctx); err != nil {
		return measured, false, err
	}
	attached := milliseconds(time.Since(begin))
	if err := b.settle(ctx, m.observer); err != nil {
		return measured, false, errors.Join(err, m.observer.detach())
	}
	warmed, err := b.runLoop(ctx, warmUp)
	if err == nil {
		watch := b.watchForeign(self)
		measured, err = b.runLoop(ctx, b.schedule.cell)
		disturbed = watch()
	}
	begin = time.Now()
	if err := errors.Join(err, m.observer.detach()); err != nil {
		return measured, false, err
	}
	m.attach = append(m.attach, attached)
	m.detach = append(m.detach, milliseconds(time.Since(begin)))
	if trace, ok := m.observer.(*bpftraceObserver); ok {
		err = trace.check(warmed.Completions + measured.Completions)
	}
	return measured, disturbed, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fill puts the medians of the modes into the result.
func fill(r *result, modes []*mode) {
	r.PollNs, r.PostNs = map[string]map[string]float64{}, map[string]float64{}
	r.PollSpread, r.PostSpread = map[string]map[string]float64{}, map[string]float64{}
	r.AttachMs, r.DetachMs = map[string]float64{}, map[string]float64{}
	for _, m := range modes {
		r.PollNs[m.name], r.PollSpread[m.name] = map[string]float64{}, map[string]float64{}
		for n, values := range m.poll {
			r.PollNs[m.name][n], r.PollSpread[m.name][n] = median(values), spread(values)
		}
		r.PostNs[m.name], r.PostSpread[m.name] = median(m.post), spread(m.post)
		if m.name != modeUntraced {
			r.AttachMs[m.name], r.DetachMs[m.name] = median(m.attach), median(m.detach)
		}
	}
}
