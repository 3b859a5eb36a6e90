//go:build backends

package rules

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
)

// directory has the rules that ship.
const directory = "../../../../config/prometheus"

// evaluationInterval is that of prometheus.yml.
const evaluationInterval = 15 * time.Second

// start is when the time of a synctest bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// delivery is what Prometheus sends to Alertmanager at a time after the start.
type delivery struct {
	after  time.Duration
	alerts []*notifier.Alert
}

// Send implements rules.Sender.
func (d *delivery) Send(alerts ...*notifier.Alert) { d.alerts = append(d.alerts, alerts...) }

// evaluate runs the rules over what a fleet sends, for that long, and returns what
// goes to Alertmanager.
func evaluate(t *testing.T, f fleet, until time.Duration) []delivery {
	t.Helper()
	feed := newFeed(t, f)
	var now delivery
	groups := loadGroups(t, feed, &now)
	var all []delivery
	for after := time.Duration(0); after <= until; after += 5 * time.Second {
		if after%collectionInterval == 0 {
			feed.send(t, after)
		}
		if after%evaluationInterval != 0 {
			continue
		}
		now = delivery{after: after}
		for _, group := range groups {
			group.Eval(t.Context(), start.Add(after))
		}
		if len(now.alerts) > 0 {
			all = append(all, now)
		}
	}
	for _, group := range groups {
		for _, rule := range group.Rules() {
			require.NoError(t, rule.LastError(), rule.Name())
		}
	}
	return all
}

// loadGroups returns the groups of rules that ship. Prometheus evaluates them at any
// time of an interval: the order here is the worst, in which alerts of nodes come
// before that of the fleet.
func loadGroups(t *testing.T, f *feed, to rules.Sender) []*rules.Group {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	manager := rules.NewManager(&rules.ManagerOptions{
		Context:      t.Context(),
		QueryFunc:    rules.EngineQueryFunc(engine, f.storage),
		NotifyFunc:   rules.SendAlerts(to, ""),
		AppendableV2: f.storage,
		Queryable:    f.storage,
		ResendDelay:  time.Minute,
	})
	byKey, errs := manager.LoadGroups(evaluationInterval, labels.EmptyLabels(), "", nil, false,
		directory+"/rdma-recording.yaml", directory+"/rdma-alerts.yaml")
	require.Empty(t, errs)
	order := []string{"rdma-recording", "rdma-presence", "rdma-node", "rdma-receiver", "rdma-fleet"}
	groups := slices.SortedFunc(maps.Values(byKey), func(a, b *rules.Group) int {
		return cmp.Compare(slices.Index(order, a.Name()), slices.Index(order, b.Name()))
	})
	require.Len(t, groups, len(order))
	return groups
}

// firing returns the label sets of the alerts that fired, by their name.
func firing(all []delivery) map[string][]labels.Labels {
	found := map[string]map[string]labels.Labels{}
	for _, d := range all {
		for _, a := range d.alerts {
			name := a.Labels.Get("alertname")
			if found[name] == nil {
				found[name] = map[string]labels.Labels{}
			}
			found[name][a.Labels.String()] = a.Labels
		}
	}
	sets := map[string][]labels.Labels{}
	for name, of := range found {
		for _, key := range sorted(of) {
			sets[name] = append(sets[name], of[key])
		}
	}
	return sets
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
