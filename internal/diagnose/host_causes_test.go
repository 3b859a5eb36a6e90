package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A hostCase is a burst and which cause has to win, Unknown for none of the host,
// "" for whichever. Where it wins, the cause that it is listed under is as sure as
// that, else at most as sure.
type hostCase struct {
	burst *Burst
	want  string
	sure  Confidence
}

// hostCases are, for each cause of the host, bursts that it is the cause of, bursts
// that something speaks against it in, and bursts of others that look like it.
var hostCases = map[string]struct{ is, isNot, looksLike map[string]hostCase }{
	"poller_stopped": {
		is: map[string]hostCase{
			"SIGSTOP, at completion sites":   {slowOnes(1, late(200*msec), while(verbs.Scheduling{Stopped: 200 * msec})), "poller_stopped", Certain},
			"SIGSTOP while it waits":         {slowOnes(1, unlooked(200*msec), while(verbs.Scheduling{Stopped: 199900 * usec})), "poller_stopped", Likely},
			"inside of the post":             {slowOnes(1, lookedAt(200*msec, 0, 5*usec, 0), while(verbs.Scheduling{Stopped: 200 * msec})), "poller_stopped", Certain},
			"a send is stuck since it stops": {stuckOne(3*time.Second, &Poller{State: 'T', Scheduling: verbs.Scheduling{Stopped: 2999 * msec}, HasScheduling: true}), "poller_stopped", Likely},
			"posts end as it stops": {with(silence(func(*Idle) {}), func(b *Burst) {
				b.Poller = &Poller{State: 'T', Scheduling: verbs.Scheduling{Stopped: 2990 * msec}, HasScheduling: true}
			}), "poller_stopped", Likely},
		},
		isNot: map[string]hostCase{
			"stopped for a part":  {slowOnes(1, unlooked(200*msec), while(verbs.Scheduling{Stopped: 20 * msec})), Unknown, None},
			"stopped and resumed": {slowOnes(1, unlooked(200*msec), while(verbs.Scheduling{Stopped: 100 * msec})), Unknown, None},
			"scheduling unknown":  {slowOnes(1, late(200*msec), unknownScheduling), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"a debugger that looks at a hang": {stuckOne(30*time.Second, &Poller{State: 't', Scheduling: verbs.Scheduling{Stopped: 20 * time.Second}, HasScheduling: true}), "poller_stopped", Possible},
			"preempted":                       {slowOnes(1, late(200*msec), while(verbs.Scheduling{Runnable: 200 * msec, Instead: hog})), "poller_preempted", None},
		},
	},
	"poller_throttled": {
		is: map[string]hostCase{
			"quota": {throttled(50*msec, 5, 250*msec, verbs.Thread{}), "poller_throttled", Certain},
			"inside of a post of unknown end, polls found nothing after it": {
				with(slowOnes(1, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 435 * msec, verbs.StagePoll: 10 * usec}, while(verbs.Scheduling{Runnable: 430 * msec})), quota(1, 430*msec), quiet), "poller_throttled", Likely,
			},
			"quota, and others run instead": {throttled(50*msec, 5, 250*msec, hog), "poller_throttled", Likely},
		},
		isNot: map[string]hostCase{
			"no quota":      {throttled(50*msec, 0, 0, hog), "poller_preempted", None},
			"quota unknown": {with(throttled(50*msec, 0, 0, verbs.Thread{}), func(b *Burst) { b.Throttling = nil }), "poller_preempted", None},
			"the post is over, and polls found nothing after the quota": {
				with(slowOnes(1, lookedAt(usec, 0, 435*msec, 10*usec), while(verbs.Scheduling{Runnable: 430 * msec})), quota(1, 430*msec), quiet), "network_delay", None,
			},
			"in a part of it, the end of the post unknown": {
				with(slowOnes(1, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 435 * msec, verbs.StagePoll: 10 * usec}, while(verbs.Scheduling{Runnable: 300 * msec})), quota(1, 300*msec), quiet), "network_delay", None,
			},
			"the quota took half": {
				throttled(50*msec, 5, 150*msec, verbs.Thread{}), "poller_throttled", Possible,
			},
		},
		looksLike: map[string]hostCase{
			"hog while others of the cgroup are throttled a little": {throttled(4*msec, 1, 3*msec, hog), "poller_preempted", None},
			"hog while others of the cgroup are throttled for long": {throttled(4*msec, 2, 180*msec, hog), "poller_throttled", Possible},
			"asleep while others are throttled":                     {with(slowOnes(5, late(50*msec), while(verbs.Scheduling{Asleep: 50 * msec})), quota(5, 250*msec)), "poller_asleep", None},
		},
	},
	"poller_preempted": {
		is: map[string]hostCase{
			"hog, at completion sites": {slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec, Instead: hog})), "poller_preempted", Certain},
			"inside of a post of unknown end, polls found nothing after it": {
				with(slowOnes(3, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 305 * msec, verbs.StagePoll: 10 * usec}, while(verbs.Scheduling{Runnable: 300 * msec, Instead: hog})), quiet), "poller_preempted", Likely,
			},
			"hog, not known who":        {slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec})), "poller_preempted", Certain},
			"woken and not run":         {slowOnes(5, unlooked(4*msec), while(verbs.Scheduling{Asleep: 10 * usec, Runnable: 3980 * usec, Instead: hog})), "poller_preempted", Likely},
			"and something else a bit":  {slowOnes(5, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 400 * usec, verbs.StagePoll: 4 * msec}, while(verbs.Scheduling{Runnable: 4 * msec})), "poller_preempted", Likely},
			"just over the threshold":   {slowOnes(5, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 40 * usec, verbs.StagePoll: 80 * usec}, while(verbs.Scheduling{Runnable: 80 * usec})), "poller_preempted", Likely},
			"where polls are seen":      {slowOnes(5, lookedAt(usec, 0, 5*usec, 4*msec), while(verbs.Scheduling{Runnable: 3900 * usec})), "poller_preempted", Certain},
			"behind one that was late":  {backlogBehind(late(4*msec), verbs.Scheduling{Runnable: 4 * msec, Instead: hog}), "poller_preempted", Certain},
			"quota not known":           {with(slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec, Instead: hog})), func(b *Burst) { b.Throttling = nil }), "poller_preempted", Possible},
			"some absences not noticed": {slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 3900 * usec}), func(c *verbs.Completion) { c.PollerScheduling.Whole = false }), "poller_preempted", Certain},
		},
		isNot: map[string]hostCase{
			"polls found nothing after it": {slowOnes(5, unlooked(50*msec), while(verbs.Scheduling{Runnable: 40 * msec})), Unknown, None},
			"many absences with vain polls": {slowOnes(5, unlooked(50*msec), while(verbs.Scheduling{Runnable: 49 * msec, Longest: 4 * msec}), func(c *verbs.Completion) {
				c.PollerScheduling.Longest = 4 * msec
			}), Unknown, None},
			"the device was late, too": {slowOnes(5, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 50 * msec, verbs.StagePoll: 4 * msec}, while(verbs.Scheduling{Runnable: 30 * msec})), Unknown, None},
			"all of them failed": {slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec}), func(c *verbs.Completion) {
				c.Status = verbs.StatusWRFlushErr
			}), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"throttled": {throttled(50*msec, 5, 250*msec, verbs.Thread{}), "poller_throttled", None},
			"stopped":   {slowOnes(1, late(200*msec), while(verbs.Scheduling{Stopped: 200 * msec})), "poller_stopped", None},
			"asleep":    {slowOnes(3, late(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), "poller_asleep", None},
			"preempted while it posts": {
				slowOnes(3, lookedAt(4*msec, 0, 5*usec, 0), while(verbs.Scheduling{Runnable: 4 * msec})), "post_stalled", None,
			},
		},
	},
	"post_stalled": {
		is: map[string]hostCase{
			"doorbell":                 {slowOnes(3, lookedAt(400*usec, 0, 5*usec, 0)), "post_stalled", Certain},
			"preempted while it posts": {slowOnes(3, lookedAt(4*msec, 0, 5*usec, 0), while(verbs.Scheduling{Runnable: 4 * msec})), "post_stalled", Certain},
			"some were not seen to return": {with(slowOnes(9, lookedAt(4*msec, 0, 5*usec, 0)), func(b *Burst) {
				b.Slow = append(b.Slow, slowOnes(1, unlooked(400*usec)).Slow...)
			}), "post_stalled", Certain},
			"few were seen to return": {returnedSome(3, 12, 4*msec), "post_stalled", Likely},
			"poster not known":        {slowOnes(3, lookedAt(400*usec, 0, 5*usec, 0), unknownScheduling), "post_stalled", Likely},
		},
		isNot: map[string]hostCase{
			"posts are fast":           {slowOnes(3, lookedAt(usec, 0, 400*usec, 0)), Unknown, None},
			"too few were seen":        {returnedSome(2, 20, 4*msec), Unknown, None},
			"returns are not known":    {slowOnes(3, unlooked(400*usec)), Unknown, None},
			"another had it meanwhile": {slowOnes(3, lookedAt(400*usec, 0, 0, 0), func(c *verbs.Completion) { c.Poller.TID = 5 }), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"busy, and some posts were seen": {watchedSome(3, 12, 3*msec), "poller_busy", None},
			"off its CPU where no post was seen": {with(returnedSome(3, 12, 4*msec), func(b *Burst) {
				for i := 3; i < len(b.Slow); i++ {
					while(verbs.Scheduling{Runnable: 3980 * usec})(&b.Slow[i])
				}
			}), "poller_preempted", Possible},
			"stopped while it posts": {slowOnes(1, lookedAt(200*msec, 0, 5*usec, 0), while(verbs.Scheduling{Stopped: 200 * msec})), "poller_stopped", Possible},
			"stopped for a third of it": {
				with(slowOnes(2, lookedAt(200*msec, 0, 5*usec, 0)), func(b *Burst) {
					b.Slow = append(b.Slow, slowOnes(1, lookedAt(200*msec, 0, 5*usec, 0), while(verbs.Scheduling{Stopped: 200 * msec})).Slow...)
				}), "post_stalled", Likely,
			},
			"throttled while it posts": {
				with(slowOnes(5, lookedAt(50*msec, 0, 5*usec, 0), while(verbs.Scheduling{Runnable: 50 * msec})), quota(5, 250*msec)), "poller_throttled", Possible,
			},
		},
	},
	"memory_registration": {
		is: map[string]hostCase{
			"between post and poll":       {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 5*msec)), registers(5, 24*msec)), "memory_registration", Likely},
			"held up in it":               {with(slowOnes(5, late(5*msec), while(verbs.Scheduling{Asleep: 5 * msec})), registers(5, 24*msec)), "memory_registration", Likely},
			"polls are not seen":          {with(slowOnes(5, unlooked(5*msec)), registers(5, 24*msec)), "memory_registration", Possible},
			"instead of posting anything": {with(silence(itsTurn), registers(100, 2900*msec)), "memory_registration", Likely},
		},
		isNot: map[string]hostCase{
			"too few":         {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 5*msec)), registers(5, msec)), "poller_busy", None},
			"none":            {slowOnes(5, lookedAt(usec, 0, 5*usec, 5*msec)), "poller_busy", None},
			"another thread?": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 5*msec)), registers(500, 900*msec)), "memory_registration", Possible},
		},
		looksLike: map[string]hostCase{
			"preempted while another registers": {
				with(slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec, Instead: hog})), registers(50, 20*msec)), "poller_preempted", None,
			},
			"busy, a little registered": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 5*msec)), registers(1, 4*msec)), "poller_busy", None},
		},
	},
	"completion_queue_starved": {
		is: map[string]hostCase{
			"the other one is fast": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec)), otherCQ(4, 0)), "completion_queue_starved", Likely},
			"threads not known": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec)), otherCQ(0, 0), func(b *Burst) {
				b.Neighbours.ThreadsKnown, b.Neighbours.Slow = false, 1
			}), "completion_queue_starved", Possible},
			"once":                      {with(slowOnes(1, lookedAt(usec, 0, 5*usec, 3*msec)), otherCQ(4, 0)), "completion_queue_starved", Possible},
			"once, and it was seen":     {with(slowOnes(1, lookedAt(usec, 0, 5*usec, 3*msec), polledOthers(2900*usec)), otherCQ(0, 0)), "completion_queue_starved", Likely},
			"seen of some":              {with(watchedSome(3, 12, 3*msec, polledOthers(2900*usec)), otherCQ(0, 0)), "completion_queue_starved", Likely},
			"the others are slow, too":  {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec), polledOthers(2900*usec)), otherCQ(4, 3)), "completion_queue_starved", Likely},
			"it polled others for half": {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec), polledOthers(1600*usec)), otherCQ(0, 0)), "completion_queue_starved", Possible},
		},
		isNot: map[string]hostCase{
			"it polled none":     {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec), polledOthers(0)), otherCQ(4, 0)), "poller_busy", None},
			"no other one":       {slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec)), "poller_busy", None},
			"polls are not seen": {with(slowOnes(5, unlooked(3*msec)), otherCQ(4, 0)), Unknown, None},
			"its own CQ is fine": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec)), otherCQ(4, 0), func(b *Burst) { b.Neighbours.SlowOfCQ = 0 }), "completion_queue_starved", Possible},
		},
		looksLike: map[string]hostCase{
			"busy, and so the other one is slow": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec)), otherCQ(4, 3)), "poller_busy", None},
			"preempted":                          {with(slowOnes(5, late(3*msec), while(verbs.Scheduling{Runnable: 3 * msec, Instead: hog})), otherCQ(4, 0)), "poller_preempted", None},
		},
	},
	"poller_asleep": {
		is: map[string]hostCase{
			"nanosleep, at completion sites":   {slowOnes(3, late(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), "poller_asleep", Certain},
			"nanosleep, where polls are seen":  {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), sleeps(WaitTimer)), "poller_asleep", Likely},
			"where polls are seen, not why":    {slowOnes(3, lookedAt(usec, 0, 5*usec, 2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), "poller_asleep", Possible},
			"and it may have been registering": {with(slowOnes(3, late(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), registers(1, 2*msec)), "poller_asleep", Possible},
		},
		isNot: map[string]hostCase{
			"waits for the completion":                   {with(slowOnes(3, unlooked(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), sleeps(WaitEvent)), "interrupt_late", None},
			"waits for the completion, who knows":        {slowOnes(3, unlooked(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), Unknown, None},
			"waits for the completion, a poll was seen":  {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), sleeps(WaitEvent), peerSlow), Unknown, None},
			"slept before, and found nothing when awake": {with(slowOnes(3, lookedAt(usec, 0, 2*msec, 5*usec), while(verbs.Scheduling{Asleep: 2 * msec})), sleeps(WaitTimer)), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"the interrupt was late": {with(slowOnes(3, late(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), stamped, sleeps(WaitEvent)), "interrupt_late", None},
			"busy":                   {slowOnes(3, lookedAt(usec, 0, 5*usec, 2*msec)), "poller_busy", None},
		},
	},
	"interrupt_late": {
		is: map[string]hostCase{
			"by time stamps":           {with(slowOnes(3, late(300*usec), while(verbs.Scheduling{Asleep: 300 * usec})), stamped, sleeps(WaitEvent)), "interrupt_late", Likely},
			"others to the peer poll":  {with(slowOnes(3, unlooked(300*usec), while(verbs.Scheduling{Asleep: 300 * usec})), sleeps(WaitEvent)), "interrupt_late", Possible},
			"not known what it awaits": {with(slowOnes(3, late(300*usec), while(verbs.Scheduling{Asleep: 300 * usec})), stamped), "poller_asleep", Possible},
		},
		isNot: map[string]hostCase{
			"the whole peer is slow": {with(slowOnes(3, unlooked(300*usec), while(verbs.Scheduling{Asleep: 300 * usec})), sleeps(WaitEvent), peerSlow), Unknown, None},
			"the device was late by time stamps": {with(slowOnes(3, stages{verbs.StageSubmit: 0, verbs.StageCompletion: 300 * usec, verbs.StagePoll: 5 * usec},
				while(verbs.Scheduling{Asleep: 300 * usec})), stamped, sleeps(WaitEvent)), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"nanosleep":             {with(slowOnes(3, late(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), stamped, sleeps(WaitTimer)), "poller_asleep", None},
			"woken, but has no CPU": {with(slowOnes(3, late(4*msec), while(verbs.Scheduling{Asleep: 5 * usec, Runnable: 4 * msec})), stamped, sleeps(WaitEvent)), "poller_preempted", None},
		},
	},
	"poller_idle_state": {
		is: map[string]hostCase{
			"C6, by time stamps": {with(slowOnes(3, late(150*usec), while(verbs.Scheduling{Asleep: 150 * usec})), stamped, sleeps(WaitEvent), idles(133*usec, 40)), "poller_idle_state", Likely},
			"C6, without":        {with(slowOnes(3, unlooked(150*usec), while(verbs.Scheduling{Asleep: 150 * usec})), sleeps(WaitEvent), peerSlow, idles(133*usec, 40)), "poller_idle_state", Possible},
		},
		isNot: map[string]hostCase{
			"it spins":         {with(slowOnes(3, unlooked(150*usec)), idles(133*usec, 40)), Unknown, None},
			"much later":       {with(slowOnes(3, late(2*msec), while(verbs.Scheduling{Asleep: 2 * msec})), stamped, sleeps(WaitEvent), idles(133*usec, 40)), "interrupt_late", None},
			"a shallow one":    {with(slowOnes(3, late(150*usec), while(verbs.Scheduling{Asleep: 150 * usec})), stamped, sleeps(WaitEvent), idles(2*usec, 40)), "interrupt_late", None},
			"states not known": {with(slowOnes(3, late(150*usec), while(verbs.Scheduling{Asleep: 150 * usec})), stamped, sleeps(WaitEvent)), "interrupt_late", None},
		},
		looksLike: map[string]hostCase{
			"nanosleep of that length": {with(slowOnes(3, late(150*usec), while(verbs.Scheduling{Asleep: 150 * usec})), stamped, sleeps(WaitTimer), idles(133*usec, 40)), "poller_asleep", None},
		},
	},
	"poller_interrupted": {
		is: map[string]hostCase{
			"softirqs":           {slowOnes(3, lookedAt(usec, 0, 5*usec, 400*usec), while(verbs.Scheduling{Interrupted: 390 * usec})), "poller_interrupted", Certain},
			"polls are not seen": {slowOnes(3, unlooked(400*usec), while(verbs.Scheduling{Interrupted: 390 * usec, Longest: 390 * usec})), "poller_interrupted", Possible},
			"not watched at first": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 400*usec), while(verbs.Scheduling{Interrupted: 390 * usec})), func(b *Burst) {
				b.Slow[0].PollerScheduling.Interrupted, b.Slow[0].PollerScheduling.InterruptsKnown = 0, false
			}), "poller_interrupted", Likely},
		},
		isNot: map[string]hostCase{
			"by the device's own work": {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 400*usec), while(verbs.Scheduling{Interrupted: 390 * usec})), func(b *Burst) { b.Device.PCIAddress = "" }), "poller_interrupted", Possible},
			"but polls found nothing":  {slowOnes(3, lookedAt(usec, 0, 400*usec, 5*usec), while(verbs.Scheduling{Interrupted: 390 * usec})), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"not watched":                {slowOnes(3, lookedAt(usec, 0, 5*usec, 400*usec), unwatchedInterrupts), "poller_busy", Possible},
			"busy, interrupted a little": {slowOnes(3, lookedAt(usec, 0, 5*usec, 400*usec), while(verbs.Scheduling{Interrupted: 30 * usec})), "poller_busy", None},
		},
	},
	"poller_busy": {
		is: map[string]hostCase{
			"computes":                      {slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec)), "poller_busy", Likely},
			"computes, seen of some":        {watchedSome(3, 12, 3*msec), "poller_busy", Likely},
			"computes, and polls no others": {with(slowOnes(1, lookedAt(usec, 0, 5*usec, 3*msec), polledOthers(0)), otherCQ(4, 0)), "poller_busy", Likely},
			"other queues, threads unknown": {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec)), func(b *Burst) {
				b.Neighbours.ThreadsKnown, b.Neighbours.Slow = false, 1
			}), "poller_busy", Possible},
			"a hypervisor is not asked":      {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec)), func(b *Burst) { b.Stolen = nil }), "poller_busy", Possible},
			"a hypervisor took the CPU away": {with(slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec)), func(b *Burst) { *b.Stolen = 10 * msec }), "poller_busy", Possible},
		},
		isNot: map[string]hostCase{
			"polls are not seen":      {slowOnes(3, unlooked(3*msec)), Unknown, None},
			"polls of too few seen":   {watchedSome(2, 20, 3*msec), Unknown, None},
			"polls found nothing":     {slowOnes(3, lookedAt(usec, 0, 3*msec, usec)), Unknown, None},
			"absences may be missing": {slowOnes(3, lookedAt(usec, 0, 5*usec, 3*msec), func(c *verbs.Completion) { c.PollerScheduling.Whole = false }), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"starved, and seen": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec), polledOthers(2900*usec)), otherCQ(4, 0)), "completion_queue_starved", None},
			"off its CPU where it was not watched": {with(watchedSome(3, 12, 3*msec), func(b *Burst) {
				for i := 3; i < len(b.Slow); i++ {
					while(verbs.Scheduling{Runnable: 2980 * usec})(&b.Slow[i])
				}
			}), "poller_preempted", Possible},
			"starved":     {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 3*msec)), otherCQ(4, 0)), "completion_queue_starved", Possible},
			"preempted":   {slowOnes(5, lookedAt(usec, 0, 5*usec, 4*msec), while(verbs.Scheduling{Runnable: 4 * msec})), "poller_preempted", None},
			"interrupted": {slowOnes(3, lookedAt(usec, 0, 5*usec, 400*usec), while(verbs.Scheduling{Interrupted: 390 * usec})), "poller_interrupted", None},
			"registering": {with(slowOnes(5, lookedAt(usec, 0, 5*usec, 5*msec)), registers(5, 24*msec)), "memory_registration", Possible},
		},
	},
	"send_queue_full": {
		is: map[string]hostCase{
			"ENOMEM":                             {with(backlog(128), rejects), "send_queue_full", Likely},
			"refused, it was not seen why":       {with(backlog(128), refuses), "send_queue_full", Likely},
			"ENOMEM, nobody else to the peer":    {with(backlog(128), rejects, func(b *Burst) { b.Neighbours.ActiveOfPeer = 0 }), "send_queue_full", Possible},
			"ENOMEM, the limit is not known":     {with(backlog(128), rejects, func(b *Burst) { b.Queue = nil }), "send_queue_full", Possible},
			"ENOMEM, and all to the peer slowed": {with(backlog(128), rejects, peerSlow), "send_queue_full", Possible},
		},
		isNot: map[string]hostCase{
			"nothing refused":               {backlog(128), "send_queue_backlog", None},
			"refused by a shallow queue":    {with(backlog(20), rejects), "send_queue_full", Possible},
			"refused by it, nobody saw why": {with(backlog(20), refuses), "send_queue_backlog", None},
			"not behind anything":           {with(slowOnes(5, unlooked(400*usec)), rejects), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"the poller was preempted, so it filled": {
				with(backlogBehind(late(4*msec), verbs.Scheduling{Runnable: 4 * msec, Instead: hog}), rejects), "poller_preempted", None,
			},
			"one request was slow, so it filled": {with(backlogBehind(unlooked(4*msec), verbs.Scheduling{}), rejects), "network_delay", Possible},
		},
	},
	"send_queue_backlog": {
		is: map[string]hostCase{
			"deep":                                   {backlog(100), "send_queue_backlog", Possible},
			"deep, and one other was slow by itself": {with(backlog(100), slowToo(2*msec)), "send_queue_backlog", Possible},
			"deep, and the port needed time for each": {backlog(100, headOf(100*usec, 300*usec, 50*usec)), "send_queue_backlog", Possible},
			"deep, none takes longer than is normal":  {backlog(100, headOf(100*usec, 0, 200*usec)), "send_queue_backlog", Possible},
			"a long unsignaled run":                   {slowOnes(5, unlooked(400*usec), run(64)), "send_queue_backlog", Likely},
			"a longer run than before":                {with(slowOnes(5, unlooked(400*usec), run(64)), usualRun(4)), "send_queue_backlog", Likely},
			"runs that never were fast":               {with(slowOnes(5, unlooked(400*usec), run(64)), usualRun(64), func(b *Burst) { b.Baseline.Median = 300 * usec }), "send_queue_backlog", Likely},
			"polls found nothing":                     {with(slowOnes(5, lookedAt(usec, 0, 4*msec, usec), run(100)), usualRun(4), quiet), "send_queue_backlog", Likely},
			"a long run, who else knows":              {with(slowOnes(5, unlooked(400*usec), run(64)), func(b *Burst) { b.Neighbours = Neighbours{} }), "send_queue_backlog", Possible},
		},
		isNot: map[string]hostCase{
			"at the head":                    {slowOnes(5, unlooked(400*usec)), Unknown, None},
			"a short run":                    {slowOnes(5, unlooked(400*usec), run(4)), Unknown, None},
			"a run, but each of it was slow": {slowOnes(5, unlooked(40*msec), run(64)), Unknown, None},
			"a run, as long as before":       {with(slowOnes(5, unlooked(400*usec), run(64)), usualRun(60)), Unknown, None},
			"a run, all to the peer are slow": {
				with(slowOnes(5, unlooked(400*usec), run(64)), peerSlow), "send_queue_backlog", Possible,
			},
		},
		looksLike: map[string]hostCase{
			"full": {with(backlog(128), rejects), "send_queue_full", Possible},
			"one was slow, all others waited for it": {
				with(backlogBehind(unlooked(4*msec), verbs.Scheduling{}), quiet), "network_delay", None,
			},
			"polls found nothing for the one that others waited for": {
				with(backlogBehind(lookedAt(usec, 0, 4*msec, usec), verbs.Scheduling{}), quiet), "network_delay", None,
			},
			"nobody looked, and others waited for it": {
				with(backlogBehind(unlooked(4*msec), verbs.Scheduling{}), func(b *Burst) { b.Neighbours.ActiveOfCQ = 0 }), Unknown, None,
			},
			"each was slow, one after the other": {backlogOf(5, 4*msec), "", None},
			"a longer path, and runs as long as before": {
				with(slowOnes(5, lookedAt(usec, 0, 4*msec, usec), run(100)), usualRun(100), quiet), Unknown, None,
			},
			"preempted, with what is behind": {
				backlogBehind(late(4*msec), verbs.Scheduling{Runnable: 4 * msec, Instead: hog}), "poller_preempted", None,
			},
			"a run whose poller is preempted": {
				slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec, Instead: hog}), run(128)), "poller_preempted", None,
			},
		},
	},
	"application_late": {
		is: map[string]hostCase{
			"its turn":           {silence(itsTurn), "application_late", Likely},
			"the peer goes on":   {silence(func(i *Idle) { itsTurn(i); i.LastReceive, i.Sends, i.Ordered = i.Since+2.5e9, 1, false }), "application_late", Likely},
			"waits for nothing":  {silence(func(i *Idle) { itsTurn(i); i.ReceivesOutstanding, i.Sends = 0, 1 }), "application_late", Likely},
			"turns not known":    {silence(func(i *Idle) { itsTurn(i); i.Sends, i.Receives = 0, 0 }), "application_late", Possible},
			"never receives":     {silence(func(i *Idle) { i.ReceivesOutstanding, i.Receives = 0, 0 }), "application_late", Possible},
			"order not known":    {silence(func(i *Idle) { itsTurn(i); i.Ordered = false }), "application_late", Possible},
			"it may be stopped":  {with(silence(itsTurn), func(b *Burst) { b.Poller = nil }), "application_late", Possible},
			"receives not known": {silence(func(i *Idle) { i.HasReceives = false }), "application_late", Possible},
		},
		isNot: map[string]hostCase{
			"sends are outstanding": {silence(func(i *Idle) { itsTurn(i); i.SendsOutstanding = 1 }), Unknown, None},
			"requests were slow":    {slowOnes(5, unlooked(400*usec)), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"the peer's turn": {silence(peersTurn), "peer_late", Possible},
			"stopped": {with(silence(itsTurn), func(b *Burst) {
				b.Poller = &Poller{State: 'T', Scheduling: verbs.Scheduling{Stopped: 2990 * msec}, HasScheduling: true}
			}), "poller_stopped", Likely},
			"stopped, not known since when": {with(silence(itsTurn), func(b *Burst) { b.Poller.State = 'T' }), "poller_stopped", Possible},
			"registering":                   {with(silence(itsTurn), registers(100, 2900*msec)), "memory_registration", Likely},
		},
	},
	"peer_late": {
		is: map[string]hostCase{
			"its turn": {silence(peersTurn), "peer_late", Likely},
		},
		isNot: map[string]hostCase{
			"it never answered":     {silence(func(*Idle) {}), "application_late", Possible},
			"order not known":       {silence(func(i *Idle) { peersTurn(i); i.Ordered = false }), "application_late", Possible},
			"the peer goes on":      {silence(func(i *Idle) { peersTurn(i); i.LastReceive, i.Ordered = i.Since+2.5e9, false }), "application_late", None},
			"turns not known":       {silence(func(i *Idle) { peersTurn(i); i.Sends = 0 }), "application_late", Possible},
			"last send not seen":    {silence(func(i *Idle) { peersTurn(i); i.LastDelivery = i.Since - 1 }), "application_late", Possible},
			"nothing is posted":     {silence(func(i *Idle) { peersTurn(i); i.ReceivesOutstanding = 0 }), "application_late", None},
			"sends are outstanding": {silence(func(i *Idle) { peersTurn(i); i.SendsOutstanding = 1 }), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"this one's turn":               {silence(itsTurn), "application_late", None},
			"stopped, not known since when": {with(silence(peersTurn), func(b *Burst) { b.Poller.State = 'T' }), "poller_stopped", Possible},
		},
	},
	"hang": {
		is: map[string]hostCase{
			"the poller spins":       {with(stuckOne(3*time.Second, &Poller{State: 'R'}), quiet), "hang", Likely},
			"the poller waits":       {with(stuckOne(3*time.Second, &Poller{State: 'S', Wait: WaitEvent}), quiet), "hang", Likely},
			"counters not known":     {stuckOne(3*time.Second, &Poller{State: 'R'}), "hang", Possible},
			"nothing known":          {stuckOne(3*time.Second, nil), "hang", Possible},
			"the poller has no CPU":  {with(stuckOne(3*time.Second, &Poller{State: 'R', Scheduling: verbs.Scheduling{Runnable: 2900 * msec}, HasScheduling: true}), quiet), "hang", Possible},
			"the poller is held up":  {with(stuckOne(3*time.Second, &Poller{State: 'D'}), quiet), "hang", Possible},
			"an event of the device": {with(stuckOne(3*time.Second, &Poller{State: 'R'}), quiet, func(b *Burst) { b.Events = []verbs.AsyncEvent{{Type: verbs.AsyncQPFatal}} }), "hang", Possible},
		},
		isNot: map[string]hostCase{
			"nothing is stuck": {slowOnes(5, unlooked(400*usec)), Unknown, None},
		},
		looksLike: map[string]hostCase{
			"stopped": {with(stuckOne(3*time.Second, &Poller{State: 'T', Scheduling: verbs.Scheduling{Stopped: 2999 * msec}, HasScheduling: true}), quiet), "poller_stopped", Possible},
			"the device sends again": {with(stuckOne(3*time.Second, &Poller{State: 'R'}), quiet, func(b *Burst) {
				b.Counters.grew[counterKey{"hw_counters", "rnr_nak_retry_err"}] = 4
			}), "", Possible},
		},
	},
}

func TestHostCauses(t *testing.T) {
	if len(hostCases) != len(hostCauses()) {
		t.Errorf("cases of %d causes, of %d", len(hostCases), len(hostCauses()))
	}
	for _, cause := range hostCauses() {
		cases := hostCases[cause.Name]
		for kind, some := range map[string]map[string]hostCase{"for": cases.is, "against": cases.isNot, "look-alike": cases.looksLike} {
			if len(some) == 0 {
				t.Errorf("no case %s %s", kind, cause.Name)
			}
			for name, c := range some {
				t.Run(cause.Name+"/"+kind+"/"+name, func(t *testing.T) { checkHostCase(t, &cause, kind, c) })
			}
		}
	}
}

func checkHostCase(t *testing.T, cause *Cause, kind string, c hostCase) {
	t.Helper()
	got := Judge(c.burst, Causes())
	own := cause.judge(c.burst)
	if !c.wonBy(got) {
		t.Errorf("the cause is %s (%s, explains %.2f), want %q: %+v", got.Cause, got.Confidence, got.Explains, c.want, got)
	}
	if kind == "for" && c.want == cause.Name && got.Confidence != c.sure {
		t.Errorf("it is %q, want %q: %+v", got.Confidence, c.sure, got)
	}
	if kind != "for" && own.Confidence > c.sure {
		t.Errorf("%s calls itself %q, want at most %q: %+v", cause.Name, own.Confidence, c.sure, own)
	}
}

// wonBy reports whether that is the verdict. Where no cause of the host is to be
// named, one of the network may be possible.
func (c *hostCase) wonBy(got Verdict) bool {
	ofHost := slices.ContainsFunc(hostCauses(), func(cause Cause) bool { return cause.Name == got.Cause })
	switch c.want {
	case "":
		return true
	case Unknown:
		return !ofHost && got.Confidence <= Possible
	default:
		return got.Cause == c.want
	}
}

// Where the collector itself kept the poller from its CPU, it says so.
func TestCollectorIsNamedAsItself(t *testing.T) {
	for byCollector, want := range map[bool]string{
		true:  "this collector, stress-ng (thread 99), ran on its CPU instead",
		false: "stress-ng (thread 99) ran on its CPU instead",
	} {
		s := verbs.Scheduling{Runnable: 4 * msec, Instead: hog, ByCollector: byCollector}
		verdict := Judge(slowOnes(5, late(4*msec), while(s)), Causes())
		if !slices.ContainsFunc(verdict.For, func(e Evidence) bool { return e.Text == want }) {
			t.Errorf("want %q among %+v", want, verdict.For)
		}
	}
}

// Who had the CPU is evidence. It may be gone, or a thread of the kernel: to keep it
// away is nothing to ask for.
func TestRemedyOfPreemptionNamesNobody(t *testing.T) {
	verdict := Judge(slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec, Instead: hog})), Causes())
	told := slices.ContainsFunc(verdict.For, func(e Evidence) bool { return strings.Contains(e.Text, hog.Name) })
	if !told || strings.Contains(verdict.Remedy, hog.Name) || verdict.Remedy == "" {
		t.Errorf("%+v", verdict)
	}
}
