package top

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// maxFilter is the most bytes of a filter.
const maxFilter = 256

// page is how many rows PgUp and PgDn go.
const page = 10

// press does what a key stands for.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	switch {
	case m.typing:
		m.typeFilter(name, key.Text)
		return nil
	case m.help:
		m.help = false
		return nil
	}
	switch name {
	case "q", "Q":
		return tea.Quit
	case "h", "?":
		m.help = true
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
	case "R":
		m.reverse = !m.reverse
	case "<", "left":
		m.sortBy(m.order - 1)
	case ">", "right":
		m.sortBy(m.order + 1)
	case "up", "k":
		m.first--
	case "down", "j":
		m.first++
	case "pgup":
		m.first -= page
	case "pgdown":
		m.first += page
	case "home":
		m.first = 0
	default:
		if at := slices.IndexFunc(orders(), func(o order) bool { return o.key == name }); at >= 0 {
			m.sortBy(at)
		}
	}
	m.first = max(m.first, 0)
	return nil
}

// sortBy takes another order, the rows from the top on.
func (m *model) sortBy(at int) {
	n := len(orders())
	m.order, m.first = (at+n)%n, 0
}

// typeFilter takes a key while a filter is typed.
func (m *model) typeFilter(name, typed string) {
	m.first = 0
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	case "ctrl+u":
		m.filter = ""
	case "space":
		m.filter += " "
	default:
		if len(m.filter)+len(typed) <= maxFilter {
			m.filter += text.Clean(typed, maxFilter)
		}
	}
}

// helpLines lists the keys.
func helpLines() []string {
	lines := []string{
		"q          quit",
		"/          filter: queues, and their incidents, that have each word, such as  mlx5_3 rank:7",
		"Esc        all queues again",
		"R          turn the order round",
		"< >        sort by the order before, after",
		"↑ ↓ PgUp PgDn Home",
		"",
		"sort by",
	}
	for _, o := range orders() {
		lines = append(lines, fmt.Sprintf("  %-8s %s", o.key, o.name))
	}
	return append(lines, "",
		"DEPTH is now/peak/limit of the Send Queue. P50 to WORST and SLOW are of the last one to two",
		"minutes, quantiles at most √2 too high. A queue that is not synced is counted and not timed.",
		"", strings.Repeat(" ", 2)+"any key goes back")
}
