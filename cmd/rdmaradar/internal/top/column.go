package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// unknown stands for what is not known.
const unknown = "-"

// column is one column of the table.
type column struct {
	title string
	// order is the name of the one that sorts by it, "" for none.
	order string
	say   func(*Row) string
	// least and most are the widths between which it takes what its cells need; left
	// has text at the left.
	least, most int
	left        bool
	// leaves is when the column goes where there is no room: those with 1 first, 0 never.
	leaves int
}

func columns() []column {
	return []column{
		{title: "PID", order: "pid", say: func(r *Row) string { return number(r.PID) }, least: 7, most: 10},
		{title: "PROCESS", order: "process", say: processOf, least: 10, most: 24, left: true},
		{title: "RANK", say: rankOf, least: 4, most: 6, leaves: 4},
		{title: "DEVICE", order: "device", say: func(r *Row) string { return known(r.Device) }, least: 7, most: 16, left: true},
		{title: "QP", say: func(r *Row) string { return fmt.Sprintf("0x%x", r.QP) }, least: 8, most: 10},
		{title: "PEER", say: func(r *Row) string { return known(r.Peer) }, least: 9, most: 39, left: true, leaves: 1},
		{title: "DEPTH", order: "depth", say: depthOf, least: 7, most: 17},
		{title: "RATE", order: "rate", say: func(r *Row) string { return count(r.Rate) + "/s" }, least: 8, most: 10, leaves: 5},
		{title: "SENT", order: "sent", say: func(r *Row) string { return bits(r.Throughput) }, least: 9, most: 10, leaves: 2},
		{title: "P50", order: "p50", say: func(r *Row) string { return duration(r.P50Ns) }, least: 6, most: 8, leaves: 6},
		{title: "P99", order: "p99", say: func(r *Row) string { return duration(r.P99Ns) }, least: 6, most: 8},
		{title: "P99.9", order: "p99.9", say: func(r *Row) string { return duration(r.P999Ns) }, least: 6, most: 8, leaves: 3},
		{title: "WORST", order: "worst", say: func(r *Row) string { return duration(r.WorstNs) }, least: 6, most: 8},
		{title: "SLOW", order: "slow", say: func(r *Row) string { return number(r.Slow) }, least: 5, most: 10},
		{title: "WHY", order: "trouble", say: whyOf, least: 20, most: 60, left: true},
	}
}

// fit gives widths to the columns that have room in so many cells, 0 for any number, for
// these rows.
func fit(rows []Row, width int) []column {
	all := columns()
	for i := range all {
		natural := ansi.StringWidth(all[i].title)
		for j := range rows {
			natural = max(natural, ansi.StringWidth(all[i].say(&rows[j])))
		}
		all[i].most = min(max(natural, all[i].least), all[i].most)
	}
	if width == 0 {
		return all
	}
	for leaving := 1; leaving <= len(all) && widthOf(all, true) > width; leaving++ {
		for i := range all {
			if all[i].leaves == leaving {
				all = append(all[:i:i], all[i+1:]...)
				break
			}
		}
	}
	return shrink(all, width)
}

// shrink takes from the widest columns what they can spare.
func shrink(all []column, width int) []column {
	for excess := widthOf(all, false) - width; excess > 0; {
		widest := 0
		for i := range all {
			if all[i].most-all[i].least > all[widest].most-all[widest].least {
				widest = i
			}
		}
		spare := min(all[widest].most-all[widest].least, excess)
		if spare <= 0 {
			break // What remains is cut off.
		}
		all[widest].most -= spare
		excess -= spare
	}
	return all
}

// widthOf is what a row takes, or at the least.
func widthOf(all []column, least bool) int {
	sum := len(all) - 1
	for i := range all {
		if least {
			sum += all[i].least
		} else {
			sum += all[i].most
		}
	}
	return sum
}

// cell fills the width of a column.
func (c *column) cell(content string) string {
	content = truncate(content, c.most)
	space := strings.Repeat(" ", c.most-ansi.StringWidth(content))
	if c.left {
		return content + space
	}
	return space + content
}

// truncate cuts a text off at a width. ansi.Truncate measures some characters of several
// code points, such as "#" with U+FE0F, narrower than ansi.StringWidth does.
func truncate(content string, width int) string {
	cut := ansi.Truncate(content, width, "…")
	for room := width - 1; ansi.StringWidth(cut) > width && room >= 0; room-- {
		cut = ansi.Truncate(content, room, "…")
	}
	return cut
}

// line is a row, or the titles, without space at its end and cut off at the width, 0 for
// none.
func line(all []column, say func(*column) string, width int) string {
	cells := make([]string, len(all))
	for i := range all {
		cells[i] = all[i].cell(say(&all[i]))
	}
	joined := strings.TrimRight(strings.Join(cells, " "), " ")
	if width == 0 {
		return joined
	}
	return ansi.Truncate(joined, width, "")
}

func known(name string) string {
	if name == "" {
		return unknown
	}
	return name
}

func number[T uint32 | uint64](n T) string {
	if n == 0 {
		return unknown
	}
	return strconv.FormatUint(uint64(n), 10)
}

func processOf(r *Row) string {
	if r.Kernel {
		return "[" + r.Process + "]"
	}
	return known(r.Process)
}

func rankOf(r *Row) string {
	if r.Rank == nil {
		return unknown
	}
	return strconv.Itoa(*r.Rank)
}

// depthOf is now, at its peak, and the limit.
func depthOf(r *Row) string { return fmt.Sprintf("%d/%d/%s", r.Depth, r.Peak, number(r.Limit)) }

func whyOf(r *Row) string {
	switch {
	case r.Stuck > 0:
		return fmt.Sprintf("%d stuck for %s: %s", r.Stuck, duration(r.OldestNs), r.Why)
	case r.Why != "":
		return r.Why
	case r.State != "synced":
		return "not timed: " + r.State
	case r.Crossing:
		return "polled from another NUMA node"
	default:
		return unknown
	}
}

func duration(ns int64) string {
	if ns <= 0 {
		return unknown
	}
	return text.Duration(time.Duration(ns))
}

// count is a number of three digits or so: "812", "12.3k", "4.1M".
func count(n float64) string { return scaled(n, 1000, "", "k", "M", "G") }

// bits takes bytes a second: "312Gb/s".
func bits(bytes float64) string {
	if bytes <= 0 {
		return unknown
	}
	return scaled(8*bytes, 1000, "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s")
}

func scaled(n, step float64, units ...string) string {
	last := len(units) - 1
	at := 0
	for ; at < last && n >= step; at++ {
		n /= step
	}
	digits := 0
	if at > 0 && n < 99.95 {
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + units[at]
}
