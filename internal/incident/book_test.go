package incident

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const second = uint64(time.Second)

func newBook(maxOpen int) *Book {
	made := 0
	return New(Config{
		Silence: 10 * time.Second, Holding: 5 * time.Second, Repeat: 10 * time.Second, MaxOpen: maxOpen,
		PerProcess: func(cause string) bool { return cause == "late_poller" },
		NewID: func() string {
			made++
			return strconv.Itoa(made)
		},
	})
}

func queue(process, number uint32) verbs.QueueID {
	return verbs.QueueID{Process: verbs.ProcessID{TGID: process}, QPNumber: number}
}

// report is of one slow completion that took twice its excess time.
func report(cause string, q verbs.QueueID, excess time.Duration) *Report {
	confidence := diagnose.Likely
	if cause == diagnose.Unknown {
		confidence = diagnose.None
	}
	return &Report{
		Verdict: diagnose.Verdict{Cause: cause, Confidence: confidence}, Device: "mlx5_0", Queue: q,
		Slow: 1, Excess: excess, Worst: 2 * excess, First: 1, Last: 2,
	}
}

// told are the records as "1 open pcie".
func told(records []Record) []string {
	var all []string
	for i := range records {
		r := &records[i]
		all = append(all, fmt.Sprintf("%s %s %s", r.Incident.ID, r.State, r.Incident.Verdict.Cause))
	}
	return all
}

// at is what happens in one second.
type at struct {
	second  uint64
	reports []*Report
	want    []string
}

// Of an incident without a cause nothing is told for a while: a cause that is found
// meanwhile is the first thing told.
func TestPatience(t *testing.T) {
	a, ms := queue(1, 1), time.Millisecond
	for name, steps := range map[string][]at{
		"a cause is found": {
			{1, []*Report{report(diagnose.Unknown, a, ms)}, nil},
			{2, []*Report{report("pcie", a, ms)}, []string{"1 open pcie"}},
		},
		"none is found": {
			{1, []*Report{report(diagnose.Unknown, a, ms)}, nil},
			{2, nil, nil},
			{3, nil, []string{"1 open unknown"}},
			{4, []*Report{report("pcie", a, ms)}, []string{"1 update pcie"}},
		},
		"a cause does not wait": {
			{1, []*Report{report("pcie", a, ms)}, []string{"1 open pcie"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			book := newBook(8)
			book.cfg.Patience = 2 * time.Second
			play(t, book, steps)
		})
	}
	book := newBook(8)
	book.cfg.Patience = 2 * time.Second
	book.Fold(second, report(diagnose.Unknown, a, ms))
	if got, want := told(book.Close(second)), []string{"1 open unknown", "1 closed unknown"}; !slices.Equal(got, want) {
		t.Errorf("at the end %q is told, want %q", got, want)
	}
}

func play(t *testing.T, book *Book, steps []at) {
	t.Helper()
	for _, step := range steps {
		for _, r := range step.reports {
			book.Fold(step.second*second, r)
		}
		if got := told(book.Step(step.second * second)); !slices.Equal(got, step.want) {
			t.Errorf("after %d s: %q, want %q", step.second, got, step.want)
		}
	}
}

func TestLifeOfIncidents(t *testing.T) {
	a, b, other := queue(1, 1), queue(1, 2), queue(2, 1)
	ms := time.Millisecond
	for name, steps := range map[string][]at{
		"opened by the first verdict, closed by silence": {
			{1, []*Report{report("pcie", a, ms)}, []string{"1 open pcie"}},
			{5, []*Report{report("pcie", a, ms)}, nil},
			{15, nil, []string{"1 update pcie"}},
			{16, nil, []string{"1 closed pcie"}},
			{30, nil, nil},
		},
		"one for all that use the device": {
			{1, []*Report{report("pcie", a, ms), report("pcie", b, ms), report("pcie", other, ms)}, []string{"1 open pcie"}},
		},
		"one for each process where it happens in the process": {
			{
				1,
				[]*Report{report("late_poller", a, ms), report("late_poller", b, ms), report("late_poller", other, ms)},
				[]string{"1 open late_poller", "2 open late_poller"},
			},
		},
		"updated now and then": {
			{1, []*Report{report("pcie", a, ms)}, []string{"1 open pcie"}},
			{6, []*Report{report("pcie", a, ms)}, nil},
			{11, nil, []string{"1 update pcie"}},
			{12, []*Report{report("pcie", a, ms)}, nil},
			{21, []*Report{report("pcie", b, ms)}, []string{"1 update pcie"}},
			{22, nil, nil},
		},
		"what was not known becomes known": {
			{1, []*Report{report(diagnose.Unknown, a, ms)}, []string{"1 open unknown"}},
			{2, []*Report{report("pcie", a, ms)}, []string{"1 update pcie"}},
			{3, []*Report{report(diagnose.Unknown, b, ms)}, []string{"2 open unknown"}},
		},
		"what was not known becomes that of a process": {
			{1, []*Report{report(diagnose.Unknown, a, ms)}, []string{"1 open unknown"}},
			{2, []*Report{report("late_poller", a, ms)}, []string{"1 update late_poller"}},
			{3, []*Report{report("late_poller", b, ms)}, nil},
		},
		"not when several processes are in it": {
			{1, []*Report{report(diagnose.Unknown, a, ms), report(diagnose.Unknown, other, ms)}, []string{"1 open unknown"}},
			{2, []*Report{report("late_poller", a, ms)}, []string{"2 open late_poller"}},
		},
		"not on another queue pair": {
			{1, []*Report{report(diagnose.Unknown, a, ms)}, []string{"1 open unknown"}},
			{2, []*Report{report("pcie", b, ms)}, []string{"2 open pcie"}},
		},
		"not after the holding time": {
			{1, []*Report{report(diagnose.Unknown, a, ms)}, []string{"1 open unknown"}},
			{7, []*Report{report("pcie", a, ms)}, []string{"2 open pcie"}},
		},
		"known within one window is never told as unknown": {
			{1, []*Report{report(diagnose.Unknown, a, ms), report("pcie", a, ms)}, []string{"1 open pcie"}},
		},
		"another confidence cannot wait": {
			{1, []*Report{report("pcie", a, ms)}, []string{"1 open pcie"}},
			{2, []*Report{confident(report("pcie", a, 2*ms))}, []string{"1 update pcie"}},
			{3, []*Report{report("pcie", a, ms)}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, newBook(8), steps)
		})
	}
}

func confident(r *Report) *Report {
	r.Verdict.Confidence = diagnose.Certain
	return r
}

// What is told of an incident holds of one burst: the surest, of equals the one that
// lost most. Clauses of others would contradict it.
func TestClearestBurstIsTold(t *testing.T) {
	evidence := func(name string) []diagnose.Evidence { return []diagnose.Evidence{{Name: name, Text: name}} }
	ms := time.Millisecond
	// burst is of a poller that either was on its CPU or was not.
	burst := func(number uint32, confidence diagnose.Confidence, lost time.Duration, name string) *Report {
		r := report("pcie", queue(1, number), lost)
		r.Port = uint8(number)
		r.Verdict = diagnose.Verdict{
			Cause: "pcie", Confidence: confidence, Remedy: name, Missing: []string{name}, Others: []string{name},
			For: evidence("for " + name), Against: evidence("against " + name),
		}
		return r
	}
	mild, sure, heavy := burst(1, diagnose.Likely, ms, "mild"), burst(2, diagnose.Certain, 2*ms, "sure"), burst(3, diagnose.Likely, time.Second, "heavy")
	heavier := burst(4, diagnose.Certain, 3*ms, "heavier")
	for name, test := range map[string]struct {
		reports []*Report
		want    *Report
	}{
		"one":                        {[]*Report{mild}, mild},
		"one that lost more":         {[]*Report{mild, heavy}, heavy},
		"one that lost less":         {[]*Report{heavy, mild}, heavy},
		"a surer one that lost less": {[]*Report{heavy, sure}, sure},
		"one that is less sure":      {[]*Report{sure, heavy}, sure},
		"as sure, and it lost more":  {[]*Report{sure, heavy, heavier, mild}, heavier},
	} {
		t.Run(name, func(t *testing.T) {
			book := newBook(8)
			var slow uint64
			var lost time.Duration
			for i, r := range test.reports {
				book.Fold(uint64(i+1)*second, r)
				slow, lost = slow+r.Slow, lost+r.Excess
			}
			got := book.Step(4 * second)[0].Incident
			if !reflect.DeepEqual(got.Verdict, test.want.Verdict) || got.Port != test.want.Port || got.Clearest != test.want.Worst {
				t.Errorf("%+v of port %d, longest %s", got.Verdict, got.Port, got.Clearest)
			}
			if got.Slow != slow || got.Excess != lost || got.Bursts != uint64(len(test.reports)) {
				t.Errorf("%d lost %s in %d bursts, want all of them", got.Slow, got.Excess, got.Bursts)
			}
		})
	}
}

// The longest duration is told with what is normal on its queue pair.
func TestWorstDuration(t *testing.T) {
	book := newBook(8)
	for i, excess := range []time.Duration{time.Millisecond, time.Second, time.Millisecond} {
		r := report("pcie", queue(1, uint32(i)), excess)
		r.Normal = time.Duration(i+1) * time.Microsecond
		book.Fold(second, r)
	}
	got := book.Step(second)[0].Incident
	if got.Worst != 2*time.Second || got.Normal != 2*time.Microsecond || got.WorstQueue != queue(1, 1) {
		t.Errorf("worst %s instead of %s on %v", got.Worst, got.Normal, got.WorstQueue)
	}
}

func TestWorstQueuesComeFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	book, longest := newBook(8), map[verbs.QueueID]time.Duration{}
	for range 500 {
		r := report("pcie", queue(1, random.Uint32N(50)), time.Duration(random.IntN(1_000_000)))
		if random.IntN(10) == 0 {
			r.Worst, r.Oldest, r.Stuck = 0, time.Duration(random.IntN(3_000_000)), 1
		}
		longest[r.Queue] = max(longest[r.Queue], r.Worst, r.Oldest)
		book.Fold(second, r)
	}
	want := slices.SortedFunc(maps.Keys(longest), func(a, b verbs.QueueID) int { return cmp.Compare(longest[b], longest[a]) })[:maxWorst]
	if got := book.Step(second)[0].Incident.WorstQueues; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestListsAreBounded(t *testing.T) {
	book := newBook(8)
	for i := range uint32(500) {
		r := report("pcie", queue(1+i%100, i), time.Duration(i))
		rank := int(i % 20)
		r.Rank = &rank
		r.Spans = []Span{{SpanID: [8]byte{byte(i), byte(i >> 8)}, Duration: time.Duration(i)}}
		r.Verdict.For = make([]diagnose.Evidence, 2*maxTold)
		r.Verdict.Against, r.Verdict.Missing, r.Verdict.Others = r.Verdict.For, make([]string, 2*maxTold), make([]string, 2*maxTold)
		book.Fold(second, r)
		book.Fold(second, r)
	}
	got := book.Step(second)[0].Incident
	for what, n := range map[string]int{
		"queues": len(got.Queues.Values) + got.Queues.More - 500, "processes": len(got.Processes.Values) + got.Processes.More - 100,
		"ranks": len(got.Ranks.Values) + got.Ranks.More - 20, "listed": len(got.Queues.Values) - maxListed,
		"spans": len(got.Spans) - maxSpans, "for": len(got.Verdict.For) - maxTold,
		"against": len(got.Verdict.Against) - maxTold, "missing": len(got.Verdict.Missing) - maxTold, "others": len(got.Verdict.Others) - maxTold,
	} {
		if n != 0 {
			t.Errorf("%s: %d too many", what, n)
		}
	}
	if worst, _ := got.WorstSpan(); worst.Duration != 499 {
		t.Errorf("the worst span took %d", worst.Duration)
	}
}

// Those without a rank are counted, each once, and not when it is known later.
func TestProcessesWithoutARankAreCounted(t *testing.T) {
	b, rank := newBook(4), 3
	of := func(process uint32, rank *int) *Report {
		r := report("pcie", queue(process, 1), time.Millisecond)
		r.Rank = rank
		return r
	}
	for _, r := range []*Report{of(1, &rank), of(2, nil), of(2, nil), of(3, nil), of(4, nil), of(4, &rank), of(1, nil)} {
		b.Fold(second, r)
	}
	got := b.Step(second)[0].Incident
	if got.Unranked != 2 || !slices.Equal(got.Ranks.Values, []int{3}) {
		t.Errorf("%d without a rank beside the ranks %v, want 2 beside 3", got.Unranked, got.Ranks.Values)
	}
}

func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	book := newBook(1)
	book.Fold(second, report("pcie", queue(1, 1), 1))
	book.Fold(second, report("rnr", queue(1, 1), 1))
	if got := told(book.Step(second)); !slices.Equal(got, []string{"1 open pcie"}) || book.Beyond() != 1 {
		t.Errorf("%q, and %d beyond", got, book.Beyond())
	}
}

func TestRecordsDoNotChange(t *testing.T) {
	book := newBook(1)
	book.Fold(second, report("pcie", queue(1, 1), 1))
	record := book.Step(second)[0]
	book.Fold(2*second, report("pcie", queue(1, 2), 2))
	if len(record.Incident.Queues.Values) != 1 || record.Incident.Slow != 1 {
		t.Errorf("%+v", record.Incident)
	}
}

// Whatever is reported, every slow completion is in exactly one incident or
// counted beside them, and what was opened is closed in the end, in that order.
func TestBooksBalance(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		book := newBook(1 + random.IntN(6))
		if random.IntN(2) == 0 {
			book.cfg.Least = theLeast
		}
		var folded, inIncidents uint64
		states := map[string]State{}
		check := func(records []Record) {
			for i := range records {
				r := &records[i]
				before, known := states[r.Incident.ID]
				if known == (r.State == Opened) || known && before == Closed {
					t.Fatalf("seed %d: incident %s is %s after %s (known: %t)", seed, r.Incident.ID, r.State, before, known)
				}
				states[r.Incident.ID] = r.State
				if r.State == Closed {
					inIncidents += r.Incident.Slow
				}
			}
		}
		now := second
		for range 200 {
			for range random.IntN(4) {
				causes := []string{diagnose.Unknown, "pcie", "rnr", "late_poller"}
				r := report(causes[random.IntN(len(causes))], queue(random.Uint32N(3), random.Uint32N(3)), time.Duration(random.IntN(1000)))
				r.Slow, r.Occasions = random.Uint64N(5), random.Uint64N(3)
				r.Device = []string{"mlx5_0", "mlx5_1"}[random.IntN(2)]
				r.Verdict.Confidence = diagnose.Confidence(random.IntN(4))
				folded += r.Slow
				book.Fold(now, r)
			}
			check(book.Step(now))
			now += random.Uint64N(4 * second)
		}
		check(book.Step(now))
		closed := book.Close(now)
		for i := range closed {
			if closed[i].Unfinished != (closed[i].State == Closed) {
				t.Errorf("seed %d: %s and unfinished: %t", seed, closed[i].State, closed[i].Unfinished)
			}
		}
		check(closed)
		if len(book.Active()) != 0 {
			t.Errorf("seed %d: still open: %v", seed, book.Active())
		}
		for id, state := range states {
			if state != Closed {
				t.Errorf("seed %d: incident %s is %s in the end", seed, id, state)
			}
		}
		if folded != inIncidents+book.Beyond()+book.Minor() {
			t.Errorf("seed %d: %d slow completions, %d in incidents, %d beyond, %d minor", seed, folded, inIncidents, book.Beyond(), book.Minor())
		}
	}
}
