package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// order is a way to sort rows.
type order struct {
	// name is what --sort takes, key what is pressed.
	name, key string
	// compare puts what is to be on top first.
	compare func(a, b *Row) int
}

// most has the highest value on top, alphabetical the first name.
func most[T cmp.Ordered](of func(*Row) T) func(a, b *Row) int {
	return func(a, b *Row) int { return cmp.Compare(of(b), of(a)) }
}

func alphabetical(of func(*Row) string) func(a, b *Row) int {
	return func(a, b *Row) int { return cmp.Compare(of(a), of(b)) }
}

// orders are all of them; the first is the default.
func orders() []order {
	return []order{
		{"trouble", "t", worseFirst},
		{"slow", "s", most(func(r *Row) uint64 { return r.Slow })},
		{"p50", "5", most(func(r *Row) int64 { return r.P50Ns })},
		{"p99", "9", most(func(r *Row) int64 { return r.P99Ns })},
		{"p99.9", "0", most(func(r *Row) int64 { return r.P999Ns })},
		{"worst", "w", most(func(r *Row) int64 { return r.WorstNs })},
		{"depth", "d", most(func(r *Row) uint32 { return r.Depth })},
		{"oldest", "o", most(func(r *Row) int64 { return r.OldestNs })},
		{"rate", "r", most(func(r *Row) float64 { return r.Rate })},
		{"sent", "b", most(func(r *Row) float64 { return r.Throughput })},
		{"pid", "p", func(a, b *Row) int { return cmp.Compare(a.PID, b.PID) }},
		{"process", "n", alphabetical(func(r *Row) string { return r.Process })},
		{"device", "v", alphabetical(func(r *Row) string { return r.Device })},
	}
}

// worseFirst has on top what does not complete, then what lost the most time.
func worseFirst(a, b *Row) int {
	return cmp.Or(cmp.Compare(b.Stuck, a.Stuck), cmp.Compare(b.LostNs, a.LostNs), cmp.Compare(b.Slow, a.Slow), cmp.Compare(b.WorstNs, a.WorstNs))
}

// Orders are the names that Sort knows.
func Orders() string {
	var names []string
	for _, o := range orders() {
		names = append(names, o.name)
	}
	return strings.Join(names, ", ")
}

// orderNamed is the place of an order among all of them.
func orderNamed(name string) (int, error) {
	at := slices.IndexFunc(orders(), func(o order) bool { return o.name == name })
	if at < 0 {
		return 0, fmt.Errorf("there is no order %q: sort by %s", name, Orders())
	}
	return at, nil
}

// sortRows sorts in place. Equal rows stay in the order of their names, so that a table
// that is looked at does not dance.
func sortRows(rows []Row, by order, reverse bool) {
	slices.SortFunc(rows, func(a, b Row) int {
		first := by.compare(&a, &b)
		if reverse {
			first = -first
		}
		return cmp.Or(first, cmp.Compare(a.Process, b.Process), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Device, b.Device), cmp.Compare(a.QP, b.QP))
	})
}
