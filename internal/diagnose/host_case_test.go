package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	usec = time.Microsecond
	msec = time.Millisecond
)

// stages are how long a request was in each.
type stages map[verbs.Stage]time.Duration

// slowOnes is a burst of so many requests, one after another, posted and polled by
// one thread, of which everything around is known and calm.
func slowOnes(n int, of stages, edits ...func(*verbs.Completion)) *Burst {
	none := time.Duration(0)
	b := &Burst{
		Start: 1e9,
		End:   2e9,
		Queue: &verbs.QueueInfo{Limit: 128},
		Neighbours: Neighbours{
			Active: 4, ActiveOfPeer: 2, ActiveOfCQ: 1, QueuePairs: 5, ThreadsKnown: true,
		},
		Baseline:   &Baseline{Median: 5 * usec, P99: 20 * usec, Samples: 10000},
		Throttling: &Throttling{},
		Poller:     &Poller{Thread: poller, State: 'R'},
		Stolen:     &none,
		Device:     &Device{DeviceState: fabric.DeviceState{Device: fabric.Device{Name: "mlx5_0", PCIAddress: "0000:18:00.0"}}},
	}
	posted := b.Start
	for range n {
		c := slowOne(posted, of)
		for _, edit := range edits {
			edit(&c)
		}
		b.Slow = append(b.Slow, c)
		posted = c.Delivered + 1000
	}
	return b
}

var poller = verbs.Thread{TID: 77, CPU: 3, Name: "proxy"}

func slowOne(posted uint64, of stages) verbs.Completion {
	c := verbs.Completion{Requests: 1, Poller: poller, Threshold: 50 * usec, HasPollerScheduling: true, HasPosterScheduling: true}
	c.Posted, c.Poster, c.Outstanding = posted, poller, 1
	c.PollerScheduling = verbs.Scheduling{Whole: true, InterruptsKnown: true}
	c.PosterScheduling = c.PollerScheduling
	var sum time.Duration
	for stage, took := range of {
		c.Stages[stage] = took
		c.Known |= 1 << stage
		sum += took
	}
	c.Delivered = posted + uint64(sum)
	return c
}

// while sets what the kernel did with the thread that posted and polled.
func while(s verbs.Scheduling) func(*verbs.Completion) {
	return func(c *verbs.Completion) {
		s.Whole, s.InterruptsKnown = true, true
		s.Longest = max(s.Longest, s.Runnable, s.Asleep, s.Stopped)
		c.PollerScheduling, c.PosterScheduling = s, s
	}
}

// unwatchedInterrupts has nobody watch interrupts meanwhile.
func unwatchedInterrupts(c *verbs.Completion) { c.PollerScheduling.InterruptsKnown = false }

func with(b *Burst, edits ...func(*Burst)) *Burst {
	for _, edit := range edits {
		edit(b)
	}
	return b
}

// These are the stages where nobody saw an empty poll, where the kernel side has
// evidence that the poller was late, and where posts were seen to return as well.
func unlooked(completion time.Duration) stages {
	return stages{verbs.StageSubmit: 0, verbs.StageCompletion: completion}
}

func late(poll time.Duration) stages {
	return stages{verbs.StageSubmit: 0, verbs.StageCompletion: 5 * usec, verbs.StagePoll: poll}
}

func lookedAt(post, queue, device, poll time.Duration) stages {
	return stages{verbs.StagePost: post, verbs.StageQueue: queue, verbs.StageDevice: device, verbs.StagePoll: poll}
}

// watchedSome is a burst of n requests that were polled late by that, of the first
// of which the polls were seen.
func watchedSome(some, n int, poll time.Duration, edits ...func(*verbs.Completion)) *Burst {
	b := slowOnes(n, unlooked(poll))
	copy(b.Slow, slowOnes(some, lookedAt(usec, 0, 5*usec, poll), edits...).Slow)
	return b
}

// returnedSome is a burst of n requests whose posts took that long, of the first of
// which that was seen.
func returnedSome(some, n int, post time.Duration) *Burst {
	b := slowOnes(n, unlooked(post))
	copy(b.Slow, slowOnes(some, lookedAt(post, 0, 5*usec, usec)).Slow)
	return b
}

// polledOthers has the thread poll other Completion Queues for so long.
func polledOthers(d time.Duration) func(*verbs.Completion) {
	return func(c *verbs.Completion) { c.Elsewhere, c.HasElsewhere = d, true }
}

var hog = verbs.Thread{TID: 99, CPU: 3, Name: "stress-ng"}

// stuckOne is a burst of one send that has been outstanding for that long.
func stuckOne(age time.Duration, p *Poller) *Burst {
	return &Burst{Stuck: []verbs.Stuck{{Age: age}}, Poller: p}
}

// silence is a process that took turns with its peer and has been silent for 3 s.
func silence(edit func(*Idle)) *Burst {
	idle := &Idle{
		Active: 10 * time.Second, Since: 50e9, For: 3 * time.Second, LastDelivery: 50e9 + 10_000,
		HasReceives: true, ReceivesOutstanding: 16, Ordered: true, Sends: 1000, Receives: 1000,
	}
	edit(idle)
	return &Burst{Start: 52e9, End: 53e9, Idle: idle, Poller: &Poller{State: 'S'}}
}

// quietCounters were read and show no trouble.
func quietCounters() *Counters {
	return &Counters{Span: time.Second, grew: map[counterKey]float64{
		{fabric.SourceHardware, "local_ack_timeout_err"}: 0,
		{fabric.SourceHardware, "packet_seq_err"}:        0,
		{fabric.SourceHardware, "rnr_nak_retry_err"}:     0,
	}}
}

// What surroundings may be.

func unknownScheduling(c *verbs.Completion) {
	c.HasPollerScheduling, c.HasPosterScheduling = false, false
}

func throttled(each time.Duration, count uint64, sum time.Duration, instead verbs.Thread) *Burst {
	return with(slowOnes(5, late(each), while(verbs.Scheduling{Runnable: each, Instead: instead})), quota(count, sum))
}

func quota(count uint64, sum time.Duration) func(*Burst) {
	return func(b *Burst) { b.Throttling = &Throttling{Count: count, Time: sum} }
}

func registers(count uint64, took time.Duration) func(*Burst) {
	return func(b *Burst) { b.Registrations = Registrations{Count: count, Time: took} }
}

// otherCQ has the thread take completions from another Completion Queue; all of its
// own one are slow.
func otherCQ(active, slow int) func(*Burst) {
	return func(b *Burst) {
		b.Neighbours.ActiveOfThread, b.Neighbours.SlowOfThread = active, slow
		b.Neighbours.SlowOfCQ = b.Neighbours.ActiveOfCQ
	}
}

func sleeps(wait Wait) func(*Burst) {
	return func(b *Burst) { b.Poller.State, b.Poller.Wait = 'S', wait }
}

func stamped(b *Burst) { b.Stamped = true }

func rejects(b *Burst) { b.Rejected = 40 }

// refuses is rejects where the returns of posts are not probed.
func refuses(b *Burst) { b.Refused = 40 }

func quiet(b *Burst) { b.Counters = quietCounters() }

func peerSlow(b *Burst) {
	b.Neighbours.Slow, b.Neighbours.SlowOfPeer = b.Neighbours.ActiveOfPeer, b.Neighbours.ActiveOfPeer
}

func idles(latency time.Duration, entered uint64) func(*Burst) {
	return func(b *Burst) { b.CPUIdle = &CPUIdle{State: "C6", Latency: latency, Entered: entered} }
}

func run(requests uint32) func(*verbs.Completion) {
	return func(c *verbs.Completion) { c.Requests = requests }
}

// usualRun has so many requests complete with each of those that were normal.
func usualRun(requests float64) func(*Burst) {
	return func(b *Burst) { b.Baseline.Requests = requests }
}

func itsTurn(i *Idle) { i.LastReceive = i.Since + 20_000 }

func peersTurn(i *Idle) { i.LastReceive = i.Since - 20_000 }

// backlog is a burst of requests posted to a queue of that depth, which moved on.
func backlog(depth uint32, edits ...func(*verbs.Completion)) *Burst {
	edits = append(edits, func(c *verbs.Completion) { c.Outstanding = depth })
	return slowOnes(20, stages{verbs.StageSubmit: 400 * usec, verbs.StageCompletion: 4 * usec}, edits...)
}

// headOf has a request take so long once nothing is before it, of which the port needed
// so much, where so much is normal.
func headOf(own, busy, normal time.Duration) func(*verbs.Completion) {
	return func(c *verbs.Completion) {
		c.Stages[verbs.StageCompletion] = own
		c.Delivered = c.Posted + uint64(queued(c)+own)
		c.Busy, c.Threshold = busy, normal
	}
}

// slowToo adds a request that was slow by itself, before all others.
func slowToo(own time.Duration) func(*Burst) {
	return func(b *Burst) {
		head := slowOne(b.Start-uint64(own)-1000, unlooked(own))
		b.Slow = append([]verbs.Completion{head}, b.Slow...)
	}
}

// backlogOf is a burst of requests posted at the same time, each of which took that long
// once those before it were complete.
func backlogOf(n int, each time.Duration) *Burst {
	b := slowOnes(n, unlooked(each))
	for i := range b.Slow {
		c := &b.Slow[i]
		c.Posted, c.Delivered = b.Start, b.Start+uint64(i+1)*uint64(each)
		c.Stages[verbs.StageSubmit] = time.Duration(i) * each
	}
	return b
}

// backlogBehind is a burst of requests posted at the same time, of which the first
// took that long, and a few were behind it.
func backlogBehind(of stages, s verbs.Scheduling) *Burst {
	b := slowOnes(1, of, while(s))
	first := b.Slow[0]
	for i := range 4 {
		c := slowOne(first.Posted, of)
		c.PollerScheduling, c.PosterScheduling = first.PollerScheduling, first.PosterScheduling
		c.Outstanding = uint32(125 + i)
		if !c.Known.Has(verbs.StagePoll) {
			c.Stages[verbs.StageSubmit], c.Stages[verbs.StageCompletion] = c.Stages[verbs.StageCompletion], usec
			c.Delivered += 1000
		}
		b.Slow = append(b.Slow, c)
	}
	return b
}
