package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

const (
	// incidentLines are the lines of the first incident, and then of the others together.
	incidentLines = 3
	// staleAfter is after how long without a view that is said, delays left out.
	staleAfter = 5 * time.Second
)

// viewMsg brings a view, lostMsg says why none comes, tickMsg that time has passed.
type (
	viewMsg struct{ view *radar.View }
	lostMsg struct{ err error }
	tickMsg struct{}
)

// model is what is on the screen. It is changed by messages alone.
type model struct {
	where string
	delay time.Duration
	// left is how many views are to come, less than 0 for no end.
	left int
	now  func() time.Time
	zone *time.Location

	width, height int
	view          *radar.View
	// seen is when the view came, lost why none has come since, nil when they come.
	seen time.Time
	lost error

	order   int
	reverse bool
	filter  string
	// typing is true while a filter is typed, help while the keys are shown.
	typing, help bool
	// first is the row on top.
	first int
}

func newModel(where string, o LiveOptions, now func() time.Time, zone *time.Location) (*model, error) {
	by, err := orderNamed(o.Sort)
	if err != nil {
		return nil, err
	}
	left := -1
	if o.Times > 0 {
		left = o.Times
	}
	return &model{
		where: where, delay: o.Delay, left: left, now: now, zone: zone, width: 80, height: 24, seen: now(),
		order: by, reverse: o.Reverse, filter: o.Filter,
	}, nil
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tick() }

// tick has the screen drawn anew where no view comes.
func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case viewMsg:
		return m, m.take(message.view)
	case lostMsg:
		m.lost = message.err
	case tickMsg:
		return m, tick()
	case tea.KeyPressMsg:
		return m, m.press(message)
	}
	return m, nil
}

// take ends the program after the last view that was asked for.
func (m *model) take(view *radar.View) tea.Cmd {
	m.view, m.seen, m.lost = view, m.now(), nil
	if m.left < 0 {
		return nil
	}
	if m.left--; m.left > 0 {
		return nil
	}
	return tea.Quit
}

// View implements tea.Model.
func (m *model) View() tea.View {
	view := tea.NewView(m.screen())
	view.AltScreen = true
	return view
}

// screen is all lines, as many as there is room for.
func (m *model) screen() string {
	if m.width < 1 || m.height < 1 {
		return ""
	}
	if m.help {
		return strings.Join(cut(helpLines(), m.width, m.height), "\n")
	}
	shown := m.scope()
	lines := m.above(shown)
	footer := m.footer(shown)
	room := m.height - len(lines) - 1
	if shown != nil && room > 1 {
		lines = append(lines, m.table(shown.rows, room)...)
	}
	lines = cut(lines, m.width, m.height-1)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, footer), "\n")
}

// cut keeps what there is room for.
func cut(lines []string, width, height int) []string {
	lines = lines[:min(len(lines), max(height, 0))]
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], width, "")
	}
	return lines
}

// above is what is above the table.
func (m *model) above(shown *scope) []string {
	var lines []string
	if m.view != nil {
		lines = append(lines, bold(ansi.Truncate(summary(m.view, m.zone), m.width, "")))
	}
	if s, ok := m.silence(); ok {
		lines = append(lines, styled(said{bad, s}, m.width, 2)...)
	}
	if shown == nil {
		return append(lines, "Waiting for the first view of the collector on "+m.where+".")
	}
	all := shown.headline(m.zone)
	for i, s := range all {
		switch {
		case i == 0:
			lines = append(lines, styled(s, m.width, incidentLines)...)
		case i < incidentLines:
			lines = append(lines, styled(s, m.width, 1)...)
		case i == incidentLines:
			lines = append(lines, fmt.Sprintf("and %d more", len(all)-i))
		}
	}
	if text := shown.leftOut(); text != "" {
		lines = append(lines, text)
	}
	return append(lines, "")
}

// silence says that what is shown is old, and why.
func (m *model) silence() (string, bool) {
	old := m.now().Sub(m.seen)
	switch {
	case m.lost != nil:
		return fmt.Sprintf("No view for %s, trying again: %v", old.Round(time.Second), m.lost), true
	case old > staleAfter+m.delay:
		return fmt.Sprintf("No view for %s: the collector does not answer.", old.Round(time.Second)), true
	default:
		return "", false
	}
}

// scope is what is asked for, with its rows in order; nil before the first view.
func (m *model) scope() *scope {
	if m.view == nil {
		return nil
	}
	s := scopeOf(m.view, m.filter)
	sortRows(s.rows, orders()[m.order], m.reverse)
	return s
}

// table is as many rows as there is room for, below their titles.
func (m *model) table(rows []Row, room int) []string {
	m.first = max(0, min(m.first, len(rows)-(room-1)))
	shown := rows[m.first:min(len(rows), m.first+room-1)]
	all := fit(shown, m.width)
	by := orders()[m.order].name
	titles := line(all, func(c *column) string {
		if c.order == by && ansi.StringWidth(c.title) < c.most {
			return c.title + mark(m.reverse)
		}
		return c.title
	}, m.width)
	lines := []string{reversed(titles + strings.Repeat(" ", max(0, m.width-ansi.StringWidth(titles))))}
	for i := range shown {
		text := line(all, func(c *column) string { return c.say(&shown[i]) }, m.width)
		lines = append(lines, coloured(m.severityOf(&shown[i]), text))
	}
	return lines
}

// mark is beside the title of the column that is sorted by.
func mark(reverse bool) string {
	if reverse {
		return "△"
	}
	return "▽"
}

func (m *model) severityOf(r *Row) severity {
	switch {
	case r.Stuck > 0, r.Last != 0 && m.view.At-r.Last < 15_000:
		return bad
	case r.Last != 0:
		return warn
	default:
		return plain
	}
}

// footer is the last line.
func (m *model) footer(shown *scope) string {
	switch {
	case m.typing:
		return ansi.Truncate("filter: "+m.filter+"█", m.width, "")
	case shown == nil:
		return ansi.Truncate("q quit", m.width, "")
	}
	parts := []string{"q quit", "h keys", "/ filter", "sorted by " + orders()[m.order].name}
	if m.reverse {
		parts[3] += ", reversed"
	}
	if m.filter != "" {
		parts = append(parts, fmt.Sprintf("%d of %s with %q, Esc shows all", len(shown.rows), plural(m.view.Queues.Len(), "queue"), m.filter))
	}
	return faint(ansi.Truncate(strings.Join(parts, "  "), m.width, ""))
}
