package top

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
)

// Processes choose their names, also such as are measured in two ways: none may end the
// table, or put it out of line.
func TestCellsHaveTheirWidth(t *testing.T) {
	for _, name := range []string{
		"", "python3", "#\uFE0F###########", "a\uFE0F\U000E0101字a", "漢字漢字漢字", "\U0001F1E9\U0001F1EA\U0001F1E9", "\u1100\u1161\u11a8\u1100\u1161",
		"\u0915\u094d\u0915\u094d\u0915", "\U0001F468\U0001F3FD\U0001F468", "a\u0301\u0301\u0301bcdef", "\uFDFD\uFDFD",
	} {
		for width := 1; width <= 24; width++ {
			for _, left := range []bool{false, true} {
				c := column{most: width, left: left}
				assert.Equal(t, width, ansi.StringWidth(c.cell(name)), "%q in %d", name, width)
			}
		}
	}
}
