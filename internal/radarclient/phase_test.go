package radarclient

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// What another server answers, such as the health check of a collector, is not taken for a
// node on which all is well.
func TestWhoIsNoRadar(t *testing.T) {
	for answer, says := range map[string]string{
		`{"status":"Server available"}`:          "does not say whether anything is traced",
		`{}`:                                     "does not say whether anything is traced",
		`null`:                                   "no view of a radar",
		`[]`:                                     "no view of a radar",
		``:                                       "no view of a radar",
		`{"tracing":7}`:                          "no view of a radar",
		`{"tracing":{"phase":"evil\u001b[31m"}}`: "which this version of rdmaradar does not know",
		`{"a":"` + strings.Repeat("a", maxHead):  "no view of a radar",
		"{\"at\":1,\"tracing\":{\"phase\":\"":    "no view of a radar",
	} {
		client := OnSocket(onSocket(t, answering(answer)))
		_, viewErr := client.View(t.Context())
		_, tracingErr := client.Tracing(t.Context())
		_, watchErr := OnSocket(onSocket(t, streaming("data: "+answer+"\n\n"))).watch(t)
		for name, err := range map[string]error{"view": viewErr, "tracing": tracingErr, "watch": watchErr} {
			require.ErrorIs(t, err, ErrNoView, "%s: %s", name, answer)
			assert.ErrorContains(t, err, says, "%s: %s", name, answer)
			assert.ErrorContains(t, err, "Name the socket of a collector", "%s: %s", name, answer)
			assert.NotContains(t, err.Error(), "\x1b", name)
		}
	}
}

// watch returns the views that come until none does.
func (c *Client) watch(t *testing.T) (views []radar.View, err error) {
	t.Helper()
	err = c.Watch(t.Context(), func(view radar.View) error {
		views = append(views, view)
		return nil
	})
	return views, err
}

// All phases that a collector tells are those of a view.
func TestPhasesAreKnown(t *testing.T) {
	for _, phase := range []radar.Phase{radar.Absent, radar.Starting, radar.Running, radar.Impaired, radar.Failed} {
		body, err := json.Marshal(radar.View{Tracing: radar.Tracing{Phase: phase, Reason: hostile}})
		require.NoError(t, err)
		client := OnSocket(onSocket(t, answering(string(body))))
		view, err := client.View(t.Context())
		require.NoError(t, err)
		tracing, err := client.Tracing(t.Context())
		require.NoError(t, err)
		assert.Equal(t, phase, tracing.Phase)
		assert.Equal(t, view.Tracing, tracing)
		assert.NotContains(t, tracing.Reason, "\x1b")
	}
}

// How far tracing has come is told without the queues, of which there may be many: who
// wants no more waits for no more.
func TestTracingIsToldFirst(t *testing.T) {
	body, err := json.Marshal(radar.View{Tracing: radar.Tracing{Phase: radar.Running}})
	require.NoError(t, err)
	head, _, found := strings.Cut(string(body), `"queues"`)
	require.True(t, found)
	stuck := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, head)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	tracing, err := OnSocket(onSocket(t, stuck)).Tracing(t.Context())
	require.NoError(t, err)
	assert.Equal(t, radar.Running, tracing.Phase)
}
