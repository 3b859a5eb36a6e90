package diagnose

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// trial is a burst and what is to be said of it.
type trial struct {
	name  string
	burst func(*Burst)
	// counters are of mlx5 unless another driver's are given; nil when none are
	// read.
	counters   map[fabric.CounterSource]map[string]uint64
	want       string
	confidence Confidence
}

// trials are those of one cause: bursts of which it is the cause, bursts in which
// something speaks against it so that it is none, and look-alikes.
type trials struct{ brings, against, lookalikes []trial }

func allTrials() map[string]trials {
	all := map[string]trials{}
	for _, some := range []map[string]trials{lossTrials(), pauseTrials(), pcieTrials(), otherTrials()} {
		maps.Copy(all, some)
	}
	return all
}

func TestNetworkCauses(t *testing.T) {
	all := allTrials()
	for _, cause := range networkCauses() {
		tried := all[cause.Name]
		if len(tried.brings) == 0 || len(tried.against) == 0 || len(tried.lookalikes) == 0 {
			t.Errorf("%s is not tried for, against and with a look-alike", cause.Name)
		}
		for _, trial := range slices.Concat(tried.brings, tried.lookalikes) {
			t.Run(cause.Name+"/"+trial.name, func(t *testing.T) {
				got := Judge(trial.make(), networkCauses())
				if got.Cause != trial.want || got.Confidence != trial.confidence {
					t.Errorf("got %s, %q, want %s, %q\n%+v", got.Cause, got.Confidence, trial.want, trial.confidence, got)
				}
			})
		}
		for _, trial := range tried.brings {
			if trial.want != cause.Name {
				t.Errorf("%s: %s is for %s", cause.Name, trial.name, trial.want)
			}
		}
		for _, trial := range tried.lookalikes {
			if trial.want == cause.Name && trial.confidence > Possible {
				t.Errorf("%s: %s is no look-alike", cause.Name, trial.name)
			}
		}
		for _, trial := range tried.against {
			t.Run(cause.Name+"/against/"+trial.name, func(t *testing.T) {
				if got := cause.judge(trial.make()); got.Confidence != None || got.Explains != 0 {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

// Whatever else is found: where the host's threads were late, the port was busy, or
// the process went idle, it is none of these. Only what has a time or a status of
// its own may be.
func TestNetworkIsNotToBlame(t *testing.T) {
	for name, change := range map[string]func(*Burst){
		"the poller was off its CPU": func(b *Burst) { each(b, pollerAway) },
		"polls found completions late": func(b *Burst) {
			each(b, func(r *verbs.Completion) {
				for _, stage := range []verbs.Stage{verbs.StageQueue, verbs.StageDevice, verbs.StageCompletion} {
					moveTime(r, stage, verbs.StagePoll)
				}
				r.Known = request(0, time.Second).Known
			})
		},
		"the port explains it": func(b *Burst) {
			each(b, func(r *verbs.Completion) { r.Busy, r.HasBusy = r.Duration()*9/10, true })
		},
		"the process is idle": func(b *Burst) { b.Slow, b.Stuck, b.Idle = nil, nil, &Idle{For: time.Second} },
	} {
		for cause, tried := range allTrials() {
			for _, trial := range tried.brings {
				if cause == "link_down" || strings.HasSuffix(trial.name, "given up") {
					continue
				}
				b := trial.make()
				b.Stuck = nil
				change(b)
				if got := Judge(b, networkCauses()); got.Cause != Unknown {
					t.Errorf("%s, %s/%s: %+v", name, cause, trial.name, got)
				}
			}
		}
	}
}

// Without what is known of the poller nothing is more than possible, and what is
// missing is said.
func TestNothingKnownOfThePoller(t *testing.T) {
	for cause, tried := range allTrials() {
		for _, trial := range tried.brings {
			b := trial.make()
			if cause == "link_down" || strings.HasSuffix(trial.name, "given up") || len(b.Slow) == 0 {
				continue
			}
			unseen(b)
			each(b, func(r *verbs.Completion) { r.HasPollerScheduling = false })
			got := Judge(b, networkCauses())
			if got.Confidence > Possible || len(got.Missing) == 0 {
				t.Errorf("%s/%s: %+v", cause, trial.name, got)
			}
		}
	}
}

func (trial *trial) make() *Burst {
	b := slow(10, 5*time.Millisecond)
	b.Counters = counted(trial.counters)
	if trial.burst != nil {
		trial.burst(b)
	}
	return b
}

const (
	device = "mlx5_0"
	second = uint64(time.Second)
	// ackTimeout is that of the code 14.
	ackTimeout = 67108864 * time.Nanosecond
)

// slow is a burst of n sends of 64 KiB, one after the other, of which polls found
// nothing for all but two microseconds of the delay; 1000 others were not slow.
func slow(n int, delay time.Duration) *Burst {
	b := &Burst{
		Start: 100 * second, End: 101 * second,
		Baseline:    &Baseline{Median: 20 * time.Microsecond, P99: 40 * time.Microsecond, Samples: 10000},
		Completions: 1000 + uint64(n), HasCompletions: true,
		Neighbours: Neighbours{QueuePairs: 1},
		Device:     &Device{DeviceState: fabric.DeviceState{Device: fabric.Device{Name: device}}},
	}
	at := b.Start
	for range n {
		b.Slow = append(b.Slow, request(at, delay))
		at += uint64(delay) + uint64(time.Millisecond)
	}
	return b
}

func request(posted uint64, delay time.Duration) verbs.Completion {
	r := verbs.Completion{
		WorkRequest: verbs.WorkRequest{
			Device: device, Port: 1, Operation: verbs.OpSend, Bytes: 64 << 10, Posted: posted, Outstanding: 1,
			Path:   verbs.Path{AckTimeout: ackTimeout, RetryCount: 7, HasRetryCount: true},
			Poster: verbs.Thread{TID: 7, CPU: 1},
		},
		Requests: 1, Delivered: posted + uint64(delay), Poller: verbs.Thread{TID: 7, CPU: 1},
		Known:            1<<verbs.StagePost | 1<<verbs.StageQueue | 1<<verbs.StageDevice | 1<<verbs.StagePoll,
		PollerScheduling: verbs.Scheduling{Whole: true, InterruptsKnown: true}, HasPollerScheduling: true,
	}
	r.Stages[verbs.StagePost], r.Stages[verbs.StagePoll] = time.Microsecond, time.Microsecond
	r.Stages[verbs.StageDevice] = delay - 2*time.Microsecond
	return r
}

// slowBy makes the burst one of n requests with that delay.
func slowBy(n int, delay time.Duration) func(*Burst) {
	return func(b *Burst) {
		other := slow(n, delay)
		b.Slow, b.Completions = other.Slow, other.Completions
	}
}

// byQuanta makes the burst one of so many requests that waited one quantum, two, and so
// on, and a twentieth more.
func byQuanta(quantum time.Duration, each ...int) func(*Burst) {
	return func(b *Burst) {
		b.Slow = nil
		at := b.Start
		for i, n := range each {
			for range n {
				delay := quantum*time.Duration(i+1) + quantum/20
				b.Slow = append(b.Slow, request(at, delay))
				at += uint64(delay) + uint64(time.Millisecond)
			}
		}
		b.Completions = 1000 + uint64(len(b.Slow))
	}
}

func each(b *Burst, change func(*verbs.Completion)) {
	for i := range b.Slow {
		change(&b.Slow[i])
	}
}

func moveTime(r *verbs.Completion, from, to verbs.Stage) {
	r.Stages[to] += r.Stages[from]
	r.Stages[from] = 0
}

// pollerAway takes the poller off its CPU for nearly all of a request; when it is
// back the completion is there.
func pollerAway(r *verbs.Completion) {
	moveTime(r, verbs.StageDevice, verbs.StagePoll)
	r.PollerScheduling.Runnable = r.Duration() * 95 / 100
}

// unseen makes it unknown when the poller looked in vain.
func unseen(b *Burst) {
	each(b, func(r *verbs.Completion) {
		moveTime(r, verbs.StagePoll, verbs.StageCompletion)
		moveTime(r, verbs.StageDevice, verbs.StageCompletion)
		r.Known = 1<<verbs.StagePost | 1<<verbs.StageQueue | 1<<verbs.StageCompletion
	})
}

// told is unseen where the poller sleeps for as long as the requests take, in wait.
func told(wait Wait) func(*Burst) {
	return after(unseen, func(b *Burst) {
		b.Poller = &Poller{Thread: verbs.Thread{TID: 7}, State: 'S', Wait: wait}
		each(b, func(r *verbs.Completion) { r.PollerScheduling.Asleep = r.Duration() * 95 / 100 })
	})
}

// atSite makes the requests those of a poller whose completion sites alone are probed,
// that slept once for all of their time but for this part.
func atSite(awake float64) func(*Burst) {
	return after(unseen, func(b *Burst) {
		each(b, func(r *verbs.Completion) {
			moveTime(r, verbs.StagePost, verbs.StageSubmit)
			r.Known = 1<<verbs.StageSubmit | 1<<verbs.StageCompletion
			r.PollerScheduling.Asleep = time.Duration((1 - awake) * float64(r.Duration()))
			r.PollerScheduling.Longest = r.PollerScheduling.Asleep
		})
	})
}

// behindOthers lets all requests wait for earlier work of their queue.
func behindOthers(b *Burst) {
	each(b, func(r *verbs.Completion) { moveTime(r, verbs.StageDevice, verbs.StageQueue) })
}

// after makes one change after the other.
func after(changes ...func(*Burst)) func(*Burst) {
	return func(b *Burst) {
		for _, change := range changes {
			change(b)
		}
	}
}

func operation(o verbs.Operation) func(*Burst) {
	return func(b *Burst) { each(b, func(r *verbs.Completion) { r.Operation = o }) }
}

// over spreads what the counters grew by over that time.
func over(span time.Duration) func(*Burst) {
	return func(b *Burst) { b.Counters.Span = span }
}

func neighbours(n Neighbours) func(*Burst) {
	n.QueuePairs = max(n.QueuePairs, n.Active+1)
	return func(b *Burst) { b.Neighbours = n }
}
