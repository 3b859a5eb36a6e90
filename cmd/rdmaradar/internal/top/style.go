package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// The terminal's own colours: they can be read on dark and on light.
var (
	styleBold     = ansi.Style{}.Bold()
	styleFaint    = ansi.Style{}.Faint()
	styleReversed = ansi.Style{}.Reverse(true)
	styleBad      = ansi.Style{}.ForegroundColor(ansi.Red)
	styleWarn     = ansi.Style{}.ForegroundColor(ansi.Yellow)
	styleGood     = ansi.Style{}.ForegroundColor(ansi.Green)
)

func bold(text string) string     { return styleBold.Styled(text) }
func faint(text string) string    { return styleFaint.Styled(text) }
func reversed(text string) string { return styleReversed.Styled(text) }

func coloured(s severity, text string) string {
	switch s {
	case bad:
		return styleBad.Styled(text)
	case warn:
		return styleWarn.Styled(text)
	case good:
		return styleGood.Styled(text)
	default:
		return text
	}
}

// styled is what is said in at most so many lines.
func styled(s said, width, most int) []string {
	lines := strings.Split(ansi.Wrap(s.text, width, ""), "\n")
	if len(lines) > most {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1:most-1], ansi.Truncate(rest, width, "…"))
	}
	for i := range lines {
		lines[i] = coloured(s.severity, lines[i])
	}
	return lines
}
