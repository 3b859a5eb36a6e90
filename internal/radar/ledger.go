package radar

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// ledgerPages are kept, each of ledgerPage.
	ledgerPages = 15
	ledgerPage  = time.Minute
	// maxLostRows bounds the rows of a page. Causes and devices are few.
	maxLostRows = 1024
)

// ledger adds up the time that was lost, by cause and device, minute by minute.
type ledger struct {
	pages [ledgerPages]page
}

// page is one minute; number counts minutes since the epoch.
type page struct {
	number int64
	rows   map[lostKey]*Lost
}

type lostKey struct{ cause, device string }

func pageNumber(at int64) int64 { return at / ledgerPage.Milliseconds() }

func (l *ledger) add(b *Burst) {
	if b.Slow == 0 {
		return
	}
	number := pageNumber(b.Last.UnixMilli())
	p := &l.pages[number%ledgerPages]
	if p.number != number {
		*p = page{number: number, rows: map[lostKey]*Lost{}}
	}
	key := lostKey{b.Cause, b.Device}
	row := p.rows[key]
	if row == nil {
		if len(p.rows) >= maxLostRows {
			return
		}
		row = &Lost{Cause: b.Cause, Title: b.Title, Device: b.Device}
		p.rows[key] = row
	}
	row.add(b.Slow, int64(b.Lost), StagesOf(&b.Stages))
}

func (l *Lost) add(slow uint64, lost int64, stages []Stage) {
	l.Slow += slow
	l.Time += lost
	for _, s := range stages {
		at := slices.IndexFunc(l.Stages, func(own Stage) bool { return own.Name == s.Name })
		if at < 0 {
			l.Stages = append(l.Stages, s)
			continue
		}
		l.Stages[at].Time += s.Time
	}
}

// forgetAfter is for a wall clock that was set back to a moment: pages that are still to
// come would count for as long.
func (l *ledger) forgetAfter(moment int64) {
	for i := range l.pages {
		if l.pages[i].number > pageNumber(moment) {
			l.pages[i] = page{}
		}
	}
}

// view adds up the pages that are not older than all of them together.
func (l *ledger) view(now int64) []Lost {
	sums := map[lostKey]*Lost{}
	for i := range l.pages {
		p := &l.pages[i]
		if pageNumber(now)-p.number >= ledgerPages {
			continue
		}
		for key, row := range p.rows {
			if sums[key] == nil {
				sums[key] = &Lost{Cause: row.Cause, Title: row.Title, Device: row.Device, Stages: []Stage{}}
			}
			sums[key].add(row.Slow, row.Time, row.Stages)
		}
	}
	all := make([]Lost, 0, len(sums))
	for _, row := range sums {
		slices.SortFunc(row.Stages, func(a, b Stage) int { return stageOrder(a.Name) - stageOrder(b.Name) })
		all = append(all, *row)
	}
	slices.SortFunc(all, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Device, b.Device))
	})
	return all
}

// StagesOf are the stages that took time, in their order.
func StagesOf(all *[verbs.NumStages]time.Duration) []Stage {
	stages := []Stage{}
	for stage, spent := range all {
		if spent > 0 {
			stages = append(stages, Stage{Name: verbs.Stage(stage).String(), Time: int64(spent)})
		}
	}
	return stages
}

// stageOrder is the place of a stage in the order of time.
func stageOrder(name string) int {
	for stage := range verbs.NumStages {
		if stage.String() == name {
			return int(stage)
		}
	}
	return int(verbs.NumStages)
}
