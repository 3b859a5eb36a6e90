package radar

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What lost the most time is at the top, whichever began last.
func TestWeightiestIncidentIsFirst(t *testing.T) {
	var i incidents
	i.tell(Incident{ID: "over", Last: 40, Lost: 900})
	i.tell(Incident{ID: "small", Open: true, First: 30, Lost: 2})
	i.tell(Incident{ID: "large", Open: true, First: 10, Lost: 800})
	i.tell(Incident{ID: "small and new", Open: true, First: 31, Lost: 2})

	var order []string
	for _, incident := range i.view(50) {
		order = append(order, incident.ID)
	}
	assert.Equal(t, []string{"large", "small and new", "small", "over"}, order)
}
