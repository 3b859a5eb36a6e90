//go:build e2e

package tracer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// learnExtended lets the tracer see objects of the extended verbs before a
// scenario that uses them: it probes their functions when they first turn up,
// and the simulator's queues are ready within microseconds.
func learnExtended(t *testing.T, tr *tracer.Tracer, scenario string, flags ...string) {
	t.Helper()
	if !strings.HasPrefix(scenario, "ext-") {
		return
	}
	w := startWorkload(t, "ext-both", append([]string{"--seconds", "0.3"}, flags...)...)
	w.waitReady()
	deadline := time.Now().Add(20 * time.Second)
	for !probesExtended(t, tr) && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	w.release()
	w.wait()
	if !probesExtended(t, tr) {
		t.Fatalf("the functions of the extended verbs are not probed: %+v", snapshot(t, tr).Probes)
	}
}

// learnDatagrams lets the tracer see the functions of a UD queue, which are others
// than those of the connected ones, and does so until a run was seen from its
// beginning: on a busy machine they are probed after the first ones are over.
func learnDatagrams(t *testing.T, tr *tracer.Tracer, collected *collector, scenario string) {
	t.Helper()
	if scenario != "ext-ud" {
		return
	}
	for range 20 {
		r := followWith(t, tr, collected, scenario, "--seconds", "0.1")
		r.checkBooks()
		r.checkPairs()
		if r.completions().Unsynced == 0 {
			return
		}
	}
	t.Fatal("no run of ext-ud was seen from its beginning")
}

func probesExtended(t *testing.T, tr *tracer.Tracer) bool {
	return slices.ContainsFunc(snapshot(t, tr).Probes, func(p verbs.ProbeInfo) bool {
		return slices.Contains(p.Functions, "ibv_qp_ex") && slices.Contains(p.Functions, "ibv_cq_ex")
	})
}

// The first process of all posts before the functions of its objects are known:
// with one wr_id for all, what is seen first must not be timed.
func TestFirstProcessOfExtendedVerbs(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"ext-both", "ext-post", "ext-poll"} {
		t.Run(scenario, func(t *testing.T) {
			beside(t)
			tr := startTracer(t, everything)
			r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
			w := startWorkload(t, scenario, "--seconds", "50")
			w.waitReady()
			w.release()
			// Programs are loaded when it has begun.
			for deadline := time.Now().Add(40 * time.Second); r.before.Completions.Seen == snapshot(t, tr).Completions.Seen && time.Now().Before(deadline); {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(500 * time.Millisecond)
			w.stop()
			r.finish(tr, w)
			r.checkBooks()
			r.checkPairs()
			c := r.completions()
			if c.Seen == 0 || c.Matched != 0 && scenario == "ext-both" {
				t.Errorf("a queue of which the beginning was missed: %+v", c)
			}
		})
	}
}

// What user space foretells of a process is what the kernel side looks up: both
// digest the functions of an object alike.
func TestDigestOfFunctions(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	w := startWorkload(t, "ext-both", "--seconds", "0.3")
	w.waitReady()
	var kinds map[bpf.TrackerExtendedKind]bool
	for deadline := time.Now().Add(20 * time.Second); len(kinds) < 2 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if kinds, err = tracer.DigestedKinds(tr); err != nil {
			t.Fatal(err)
		}
	}
	w.release()
	w.wait()
	if !kinds[bpf.TrackerExtendedKindEXTENDED_QP] || !kinds[bpf.TrackerExtendedKindEXTENDED_CQ] {
		t.Errorf("the kernel side told of the kinds %v alone", kinds)
	}
}

// The provider's read_opcode is more than a read, as that of libmlx5. Where no
// receive is outstanding a completion is of a send; else, with wr_ids that are
// used for both, that stays open, and nothing is timed that might be wrong.
func TestOpcodeThatIsDecided(t *testing.T) {
	beside(t)
	flags := []string{"--provider", binary(t, "libverbsim-rdmav34-nocet.so")}
	tr := startTracer(t, everything)
	collected := collect(tr)
	learnExtended(t, tr, "ext-both", flags...)
	r := followWith(t, tr, collected, "ext-both", append(flags, "--seconds", "1")...)
	r.checkBooks()
	r.checkPairs()
	r.checkCounts()
	r.checkTimed("ext-both")
	r = followWith(t, tr, collected, "ext-poll", append(flags, "--seconds", "1")...)
	r.checkBooks()
	r.checkPairs()
	r.checkCounts()
	if c := r.completions(); c.Ambiguous == 0 {
		t.Errorf("sends and receives with one wr_id were told apart: %+v", c)
	}
}

// Completions that do not tell their queue are counted and never timed.
func TestCompletionsWithoutQPNumber(t *testing.T) {
	beside(t)
	flags := []string{"--no-qp-num"}
	tr := startTracer(t, everything)
	learnExtended(t, tr, "ext-both", flags...)
	r := simulate(t, tr, "ext-both", append(flags, "--seconds", "1")...)
	r.checkBooks()
	r.checkCounts()
	if c := r.completions(); c.Ambiguous != r.truth.Counts.Completions || c.Matched != 0 {
		t.Errorf("%+v, of %d", c, r.truth.Counts.Completions)
	}
	if r.lost("unknown_qp_number") != r.truth.Counts.Completions {
		t.Errorf("lost %v", r.losses())
	}
}

// What other scenarios do, they can do through the extended verbs: threads that
// share queues, queues that are destroyed with work outstanding, Shared Receive
// Queues, equal numbers on two devices.
func TestScenariosThroughExtendedVerbs(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	learnExtended(t, tr, "ext-both")
	for _, scenario := range []string{"threads", "churn", "srq", "two-devices", "sig-all", "sge32", "late-poller", "poll256", "uc"} {
		t.Run(scenario, func(t *testing.T) {
			r := followWith(t, tr, collected, scenario, "--ext-post", "--ext-poll", "--seconds", "0.5")
			r.checkBooks()
			r.checkPairs()
			r.checkCounts()
			r.checkTimed(scenario)
		})
	}
}

// A process says of the functions of its queues what they are not. It spoils
// nothing for the next one.
func TestProcessThatLiesAboutItsFunctions(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	followWith(t, tr, collected, "ext-both", "--ext-lie", "--seconds", "0.3").checkBooks()
	learnExtended(t, tr, "ext-both")
	r := followWith(t, tr, collected, "ext-post", "--seconds", "1")
	r.checkBooks()
	r.checkPairs()
	r.checkCounts()
	r.checkTimed("ext-post")
}
