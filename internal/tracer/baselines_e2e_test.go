//go:build e2e

package tracer_test

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/baseline"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// slowDevice takes six times the threshold for every request.
var slowDevice = []string{"slow-device", "--latency-us", "300", "--rate", "4000"}

// On a device on which every request takes six times the threshold they are all slow
// at first, and none once that was learned to be usual; a spike still is.
func TestWhatIsUsualIsNotSlow(t *testing.T) {
	beside(t)
	const threshold = 50 * time.Microsecond
	const limit = baseline.Ceiling * threshold
	cfg := everything
	cfg.Threshold = threshold
	tr := startTracer(t, tracer.LearnEvery(cfg, time.Millisecond))
	collected := collect(tr)

	first := learnUsual(t, tr, collected, limit)
	if slow := first.slow(); slow < first.certainlyOver(threshold)/2 {
		t.Errorf("%d were slow before anything was learned, of %d over the threshold", slow, first.certainlyOver(threshold))
	}

	r := followWith(t, tr, collected, slowDevice[0], append(slowDevice[1:], "--seconds", "3", "--spike-us", "5000", "--spikes-per-second", "5")...)
	r.checkBooks()
	if _, wrong := r.pairs(); len(wrong) > 0 {
		t.Errorf("%d wrong pairs, the first: %s", len(wrong), wrong[0])
	}
	least, most := r.certainlyOver(limit), r.possiblyOver(limit)
	told := 0
	for _, c := range r.seen {
		if int(c.Queue.Process.TGID) != r.truth.PID {
			continue
		}
		told++
		if c.Threshold != limit || c.Duration() <= limit {
			t.Errorf("%v is slow by a limit of %v, want %v", c.Duration(), c.Threshold, limit)
		}
	}
	usual := r.lost("usual_for_its_kind")
	t.Logf("of %d requests %d to %d were over %v, with %d spikes; slow %d, told %d, usual %d",
		r.truth.Counts.Completions, least, most, limit, len(r.truth.Spikes), r.slow(), told, usual)
	if len(r.truth.Spikes) == 0 || least < uint64(len(r.truth.Spikes)) {
		t.Fatalf("%d spikes and %d requests over the limit: this says nothing", len(r.truth.Spikes), least)
	}
	if slow := r.slow(); slow < least || slow > most || uint64(told) != slow {
		t.Errorf("%d are slow and %d were told, want %d to %d", slow, told, least, most)
	}
	if over := r.certainlyOver(threshold); usual+r.slow() < over {
		t.Errorf("%d usual and %d slow, of %d over the threshold", usual, r.slow(), over)
	}
}

// Where there is no room for a kind its requests are counted and measured against the
// threshold; room is made at the next look.
func TestKindsWithoutRoom(t *testing.T) {
	beside(t)
	cfg := everything
	cfg.Threshold = 50 * time.Microsecond
	tr := startTracer(t, tracer.LearnEvery(cfg, time.Hour))
	if err := tracer.Learn(tr); err != nil { // So that none comes between.
		t.Fatal(err)
	}
	kinds, err := tracer.FillKinds(tr)
	if err != nil {
		t.Fatal(err)
	}
	r := simulate(t, tr, slowDevice[0], append(slowDevice[1:], "--seconds", "0.5")...)
	r.checkBooks()
	if over := r.certainlyOver(cfg.Threshold); r.slow() < over || r.lost("baseline_map_full") < over || over == 0 {
		t.Errorf("%d are slow and %d found no room, of %d over the threshold", r.slow(), r.lost("baseline_map_full"), over)
	}
	if err := tracer.Learn(tr); err != nil {
		t.Fatal(err)
	}
	if got, want := snapshot(t, tr).Losses["baseline_forgotten"], uint64(kinds/4); got != want {
		t.Errorf("%d kinds were dropped, want %d", got, want)
	}
}

// learnUsual runs the slow device until a limit was learned.
func learnUsual(t *testing.T, tr *tracer.Tracer, collected *collector, want time.Duration) *run {
	t.Helper()
	r := &run{t: t, collected: collected, before: snapshot(t, tr)}
	w := startWorkload(t, slowDevice[0], append(slowDevice[1:], "--seconds", "60")...)
	w.waitReady()
	w.release()
	looks := 0
	for begin := time.Now(); tracer.HighestLimit(tr) == 0; looks++ {
		if time.Since(begin) > 50*time.Second {
			t.Fatalf("nothing was learned from %d looks", looks)
		}
		time.Sleep(20 * time.Millisecond)
		if err := tracer.Learn(tr); err != nil {
			t.Fatal(err)
		}
	}
	if got := tracer.HighestLimit(tr); got != want {
		t.Errorf("the limit is %v, want %v", got, want)
	}
	w.stop()
	r.finish(tr, w)
	return r
}

// slow is how many requests of the workload were slow.
func (r *run) slow() (n uint64) {
	r.series(func(s *verbs.Series) { n += s.Slow })
	return n
}

// certainlyOver and possiblyOver count the requests that took longer than a limit, by
// the least and by the most that they may have taken.
func (r *run) certainlyOver(limit time.Duration) (n uint64) {
	for i := range r.records {
		if q := &r.records[i]; !q.Recv() && q.PollBefore > q.PostAfter+uint64(limit) {
			n++
		}
	}
	return n
}

func (r *run) possiblyOver(limit time.Duration) (n uint64) {
	for i := range r.records {
		if q := &r.records[i]; !q.Recv() && q.PollAfter > q.PostBefore+uint64(limit) {
			n++
		}
	}
	return n
}
