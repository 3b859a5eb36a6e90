//go:build backends

package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A node that went before Prometheus did is missed when that is back. The days that it is
// missed for are in config/prometheus/tests/gone.yaml.
func TestGoneNodeIsMissedAfterPrometheusWasAway(t *testing.T) {
	feed := newFeed(t, fleet{nodes: 2, rails: 1, at: func(int, int, time.Duration) condition { return condition{usually: usual} }})
	var sent delivery
	groups := loadGroups(t, feed, &sent)
	run := func(from, until time.Duration) []delivery {
		var all []delivery
		for after := from; after <= until; after += 30 * time.Second {
			feed.send(t, after)
			sent = delivery{after: after}
			for _, group := range groups {
				group.Eval(t.Context(), start.Add(after))
			}
			all = append(all, sent)
		}
		return all
	}
	require.Empty(t, firing(run(0, 5*time.Minute)))
	feed.devices = feed.devices[:1]
	require.Empty(t, firing(run(6*time.Minute, 8*time.Minute)))
	missed := firing(run(5*time.Hour, 5*time.Hour+3*time.Minute))["RDMAReceiverGone"]
	require.Len(t, missed, 1)
	assert.Equal(t, hostName(1), missed[0].Get("host_name"))
}
