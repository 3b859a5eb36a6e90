package top

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
)

func TestWindowsAreBounded(t *testing.T) {
	for size, want := range map[tea.WindowSizeMsg]tea.WindowSizeMsg{
		{Width: 120, Height: 40}:      {Width: 120, Height: 40},
		{Width: 2000, Height: 2000}:   {Width: mostColumns, Height: mostLines},
		{Width: 65535, Height: 65535}: {Width: mostColumns, Height: mostLines},
	} {
		assert.Equal(t, want, bounded(nil, size))
	}
	assert.Equal(t, tickMsg{}, bounded(nil, tickMsg{}))
}
