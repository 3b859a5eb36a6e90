package top

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// screen is a model without a terminal, and its clock.
type screen struct {
	*model
	t   *testing.T
	now time.Time
}

func newScreen(t *testing.T, o LiveOptions) *screen {
	t.Helper()
	s := &screen{t: t, now: moment}
	if o.Sort == "" {
		o.Sort = "trouble"
	}
	m, err := newModel("/run/radar.sock", o, func() time.Time { return s.now }, time.UTC)
	require.NoError(t, err)
	s.model = m
	s.size(120, 16)
	return s
}

func (s *screen) size(width, height int) { s.Update(tea.WindowSizeMsg{Width: width, Height: height}) }

// press presses keys, and returns what the last one asks for.
func (s *screen) press(keys ...tea.KeyPressMsg) (last tea.Cmd) {
	for _, key := range keys {
		_, last = s.Update(key)
	}
	return last
}

func typed(text string) (keys []tea.KeyPressMsg) {
	for _, r := range text {
		keys = append(keys, tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return keys
}

func special(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code} }

// text is what is on the screen, without colours.
func (s *screen) text() string { return ansi.Strip(s.View().Content) }

// queues are the numbers of the queues in the table, from the top.
func (s *screen) queues() (numbers []string) {
	for line := range strings.Lines(s.text()) {
		for _, field := range strings.Fields(line) {
			if strings.HasPrefix(field, "0x") && len(line) > 0 && line[0] == ' ' {
				numbers = append(numbers, field)
			}
		}
	}
	return numbers
}

func ends(t *testing.T, command tea.Cmd) bool {
	t.Helper()
	if command == nil {
		return false
	}
	_, ok := command().(tea.QuitMsg)
	return ok
}

func TestScreen(t *testing.T) {
	s := newScreen(t, LiveOptions{})
	assert.Contains(t, s.text(), "Waiting for the first view of the collector on /run/radar.sock.")
	s.Update(viewMsg{sample()})
	golden(t, "screen.txt", s.text()+"\n")
	assert.True(t, s.View().AltScreen)
}

// No line is wider and no screen higher than the terminal, whatever it shows.
func TestScreenFits(t *testing.T) {
	s := newScreen(t, LiveOptions{})
	s.Update(viewMsg{sample()})
	for _, help := range []bool{false, true} {
		s.help = help
		for width := range 130 {
			for height := range 20 {
				s.size(width, height)
				lines := strings.Split(s.View().Content, "\n")
				require.LessOrEqual(t, len(lines), max(height, 1), "%dx%d", width, height)
				for _, line := range lines {
					require.LessOrEqual(t, ansi.StringWidth(line), width, "%dx%d", width, height)
				}
			}
		}
	}
}

func TestKeys(t *testing.T) {
	s := newScreen(t, LiveOptions{})
	s.Update(viewMsg{sample()})
	assert.Equal(t, []string{"0x18f3", "0x18f2", "0x44", "0x45"}, s.queues())
	s.press(typed("p")...)
	assert.Equal(t, []string{"0x44", "0x45", "0x18f2", "0x18f3"}, s.queues())
	s.press(typed("R")...)
	assert.Equal(t, "0x18f3", s.queues()[1])
	assert.Contains(t, s.text(), "sorted by pid, reversed")
	s.press(typed("R<")...)
	assert.Contains(t, s.text(), "sorted by sent")
	s.press(typed(">>>>")...)
	assert.Contains(t, s.text(), "sorted by trouble", "after the last order comes the first")

	assert.False(t, ends(t, s.press(typed("/rank:7 Q")...)), "q is a letter of a filter")
	assert.Contains(t, s.text(), "filter: rank:7 Q█")
	s.press(special(tea.KeyBackspace), special(tea.KeyBackspace), special(tea.KeyEnter))
	assert.Equal(t, []string{"0x18f3", "0x18f2"}, s.queues())
	assert.Contains(t, s.text(), `2 of 4 queues with "rank:7"`)
	s.press(special(tea.KeyEscape))
	assert.Len(t, s.queues(), 4)

	s.press(typed("h")...)
	assert.Contains(t, s.text(), "turn the order round")
	s.press(typed("q")...)
	assert.Len(t, s.queues(), 4, "any key goes back")
	assert.True(t, ends(t, s.press(typed("q")...)))
	assert.True(t, ends(t, s.press(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})))
}

func TestScrolling(t *testing.T) {
	s := newScreen(t, LiveOptions{})
	s.Update(viewMsg{sample()})
	s.size(120, 10)
	assert.Equal(t, []string{"0x18f3", "0x18f2"}, s.queues())
	s.press(special(tea.KeyDown))
	assert.Equal(t, []string{"0x18f2", "0x44"}, s.queues())
	s.press(special(tea.KeyPgDown), special(tea.KeyPgDown))
	assert.Equal(t, []string{"0x44", "0x45"}, s.queues())
	s.press(special(tea.KeyUp), special(tea.KeyPgUp))
	assert.Equal(t, []string{"0x18f3", "0x18f2"}, s.queues())
}

func TestEndAfterIterations(t *testing.T) {
	s := newScreen(t, LiveOptions{Times: 2})
	_, command := s.Update(viewMsg{sample()})
	assert.False(t, ends(t, command))
	_, command = s.Update(viewMsg{sample()})
	assert.True(t, ends(t, command))
}

// What is old is shown, and that it is.
func TestCollectorThatEnds(t *testing.T) {
	s := newScreen(t, LiveOptions{Delay: time.Second})
	s.Update(viewMsg{sample()})
	s.now = s.now.Add(3 * time.Second)
	assert.NotContains(t, s.text(), "No view")
	s.now = s.now.Add(5 * time.Second)
	assert.Contains(t, s.text(), "No view for 8s: the collector does not answer.")
	s.Update(lostMsg{errors.New("no collector answers")})
	assert.Contains(t, s.text(), "No view for 8s, trying again: no collector answers")
	assert.Contains(t, s.text(), "0x18f2")
	s.Update(viewMsg{sample()})
	assert.NotContains(t, s.text(), "No view")
}
