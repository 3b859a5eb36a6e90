package incident

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
)

// theLeast is what the receiver asks for.
var theLeast = Least{Occasions: 3, Late: 50 * time.Millisecond, Gathering: 2 * time.Second}

func TestLittleIsNoIncident(t *testing.T) {
	a, b := queue(1, 1), queue(1, 2)
	ms := time.Millisecond
	// late is a report of some occasions, each of 1 ms.
	late := func(cause string, of uint32, occasions uint64) *Report {
		r := report(cause, queue(1, of), ms)
		r.Occasions, r.Late, r.Slow = occasions, time.Duration(occasions)*ms, occasions
		return r
	}
	long := late("pcie", 1, 1)
	long.Late = 50 * ms
	failed := report("pcie", a, 0)
	failed.Failed = 1
	stuck := report("pcie", a, 0)
	stuck.Stuck, stuck.Oldest = 1, time.Second
	still := report("pcie", b, 0)
	still.Slow, still.Oldest = 0, 2*time.Second
	silent := report("pcie", a, 0)
	silent.Slow, silent.Idle = 0, time.Second
	for name, test := range map[string]struct {
		steps []at
		minor uint64
	}{
		"one, and another one later": {[]at{
			{1, []*Report{late("pcie", 1, 1)}, nil},
			{2, nil, nil},
			{3, nil, nil},
			{5, []*Report{late("pcie", 1, 2)}, nil},
			{7, nil, nil},
		}, 3},
		"three at once": {[]at{{1, []*Report{late("pcie", 1, 3)}, []string{"1 open pcie"}}}, 0},
		"three in two seconds": {[]at{
			{1, []*Report{late("pcie", 1, 1)}, nil},
			{2, []*Report{late("pcie", 1, 1)}, nil},
			{3, []*Report{late("pcie", 2, 1)}, []string{"1 open pcie"}},
			{4, []*Report{late("pcie", 2, 1)}, nil},
			{13, nil, []string{"1 update pcie"}},
			{15, nil, []string{"1 closed pcie"}},
		}, 0},
		"what hits several queue pairs at once is one": {[]at{
			{1, []*Report{late("pcie", 1, 1), late("pcie", 2, 1), late("pcie", 3, 1)}, nil},
			{2, []*Report{late("pcie", 1, 1), late("pcie", 2, 1)}, nil},
			{3, nil, nil},
		}, 5},
		"of different causes": {[]at{
			{1, []*Report{late("pcie", 1, 2), late("rnr", 1, 2)}, nil},
			{3, nil, nil},
		}, 4},
		"the first of it had no cause": {[]at{
			{1, []*Report{late(diagnose.Unknown, 1, 1)}, nil},
			{2, []*Report{late("pcie", 1, 2)}, []string{"1 open pcie"}},
		}, 0},
		"one that is long":     {[]at{{1, []*Report{long}, []string{"1 open pcie"}}}, 0},
		"one that failed":      {[]at{{1, []*Report{failed}, []string{"1 open pcie"}}}, 0},
		"one that is stuck":    {[]at{{1, []*Report{stuck}, []string{"1 open pcie"}}}, 0},
		"one that is still so": {[]at{{1, []*Report{still}, []string{"1 open pcie"}}}, 0},
		"a silence":            {[]at{{1, []*Report{silent}, []string{"1 open pcie"}}}, 0},
		"it fails while gathering": {[]at{
			{1, []*Report{late("pcie", 1, 1)}, nil},
			{2, []*Report{failed}, []string{"1 open pcie"}},
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			book := newBook(8)
			book.cfg.Least = theLeast
			for _, step := range test.steps {
				for _, r := range step.reports {
					book.Fold(step.second*second, r)
				}
				got := book.Step(step.second * second)
				if !slices.Equal(told(got), step.want) {
					t.Errorf("after %d s: %q, want %q", step.second, told(got), step.want)
				}
			}
			if book.Minor() != test.minor {
				t.Errorf("%d were minor, want %d", book.Minor(), test.minor)
			}
			if test.minor > 0 && len(book.Active()) > 0 {
				t.Errorf("still open: %v", book.Active())
			}
		})
	}
}

// What gathers is not told of when nobody looks any more, and is counted.
func TestLittleIsNoIncidentInTheEnd(t *testing.T) {
	book := newBook(8)
	book.cfg.Least = theLeast
	r := report("pcie", queue(1, 1), time.Millisecond)
	r.Occasions = 1
	book.Fold(second, r)
	if book.Step(second); len(book.Active()) != 0 {
		t.Errorf("open: %v", book.Active())
	}
	if records := book.Close(2 * second); len(records) != 0 || book.Minor() != 1 {
		t.Errorf("told of %q, %d were minor", told(records), book.Minor())
	}
}
