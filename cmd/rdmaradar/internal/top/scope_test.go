package top

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// ids are those of the incidents that a filter leaves.
func ids(s *scope) string {
	var all []string
	for i := range s.incidents {
		all = append(all, s.incidents[i].ID)
	}
	return strings.Join(all, " ")
}

func TestFilteredIncidents(t *testing.T) {
	v := sample()
	// Of a device, of the node, and of more queues than are named.
	v.Incidents = append(v.Incidents, radar.Incident{ID: "port", Open: true, Device: "mlx5_0"}, radar.Incident{ID: "node", Open: true},
		radar.Incident{ID: "many", Open: true, Device: "mlx5_3", Queues: []radar.QueueName{{PID: 8, Device: "mlx5_3", QP: 1}}, More: 40})
	for filter, want := range map[string]struct {
		ids    string
		others int
	}{
		"":               {"1 2 3 port node many", 0},
		" ":              {"1 2 3 port node many", 0},
		"0x18f2":         {"1 3 node many", 2},
		"pid:4242":       {"1 2 node many", 1},
		"mlx5_3 fe80":    {"2 node many", 2},
		"numa":           {"1 node many", 2},
		"rank:7":         {"1 2 node many", 1},
		"nvme":           {"port node", 3},
		"pid:77":         {"3 node", 4},
		"Preempted":      {"1 node many", 2},
		"nobody has it":  {"node", 4},
		"pid:77 preempt": {"node", 4},
		"device:mlx5_3":  {"1 2 3 node many", 1},
		"device:mlx5":    {"node", 4},
	} {
		s := scopeOf(v, filter)
		assert.Equal(t, want.ids, ids(s), filter)
		assert.Equal(t, want.others, s.others, filter)
	}
}

func TestLeftOut(t *testing.T) {
	for filter, says := range map[string]string{
		"": "", "rank:7": "", "0x18f2": "1 open incident of other queues is not shown.", "nvme": "2 open incidents of other queues are not shown.",
	} {
		assert.Equal(t, says, scopeOf(sample(), filter).leftOut(), filter)
		var table, document bytes.Buffer
		require.NoError(t, WriteTable(&table, sample(), Options{Sort: "trouble", Filter: filter}, time.UTC))
		assert.Contains(t, table.String(), says)
		assert.Equal(t, says != "", strings.Contains(table.String(), "not shown"), filter)
		require.NoError(t, WriteJSON(&document, sample(), Options{Sort: "trouble", Filter: filter}))
		var back Document
		require.NoError(t, json.Unmarshal(document.Bytes(), &back))
		assert.Equal(t, scopeOf(sample(), filter).others, back.OtherIncidents, filter)
	}
}

// What is said of a filter's queues is of them alone.
func TestQuietScope(t *testing.T) {
	for filter, says := range map[string]string{
		"":       "Slow now and then on 2 queues, too little for an incident.",
		"0x18f2": "Slow now and then on 1 queue, too little for an incident.",
		"nvme":   "Nothing is slow.",
		"nobody": `No queue has every word of "nobody".`,
	} {
		v := sample()
		v.Incidents = nil
		assert.Equal(t, says, scopeOf(v, filter).headline(time.UTC)[0].text, filter)
	}
}

func TestFilteredScreen(t *testing.T) {
	s := newScreen(t, LiveOptions{})
	s.Update(viewMsg{sample()})
	s.press(typed("/nvme")...)
	assert.Contains(t, s.text(), "Nothing is slow.\n2 open incidents of other queues are not shown.\n")
	assert.NotContains(t, s.text(), "poller preempted")
}
