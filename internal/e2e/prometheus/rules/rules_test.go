//go:build backends

package rules

import (
	"testing"
	"time"

	amcommoncfg "github.com/prometheus/alertmanager/config/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	usual   = 3 * time.Microsecond
	many    = 1000
	quiet   = time.Minute
	lasting = 12 * time.Minute
)

// faulty is a fleet of which all nodes become slow, one after another over a time, and
// stay so.
func faulty(spread time.Duration) fleet {
	return fleet{nodes: many, rails: 1, at: func(node, _ int, after time.Duration) condition {
		// 7 is prime to the number of nodes, so that neighbours are not next.
		begins := quiet + spread*time.Duration(node*7%many)/many
		return condition{usually: usual, slow: after >= begins}
	}}
}

func TestHealthyFleetIsSilent(t *testing.T) {
	healthy := fleet{nodes: 200, rails: 8, at: func(int, int, time.Duration) condition { return condition{usually: usual} }}
	assert.Empty(t, firing(evaluate(t, healthy, 5*time.Minute)))
}

// A fault that all have in common pages a few times, and not once for each node. The
// same alerts without inhibition and groups are many pages, so that it is these that
// hold them back.
func TestFabricFaultPagesAtMostFiveTimes(t *testing.T) {
	for _, spread := range []time.Duration{0, 8 * time.Minute} {
		t.Run("over "+spread.String(), func(t *testing.T) {
			all := evaluate(t, faulty(spread), lasting)
			fired := firing(all)
			assert.Len(t, fired["RDMASlowWorkRequests"], many)
			assert.Len(t, fired["RDMAFabricFault"], 1)

			pages := to(notifications(t, shipped(t), all, lasting), "pager")
			assert.LessOrEqual(t, len(pages), 5)
			of := map[string]int{}
			for _, p := range pages {
				t.Logf("page after %v: %v", p.after, p.firing)
				for name := range p.firing {
					of[name]++
				}
			}
			assert.Equal(t, 1, of["RDMAFabricFault"])

			single := shipped(t)
			single.InhibitRules = nil
			single.Route.GroupByAll = true
			for _, route := range single.Route.Routes {
				route.GroupByAll = true
			}
			assert.GreaterOrEqual(t, len(to(notifications(t, single, all, lasting), "pager")), many)
		})
	}
}

// A few nodes that are slow are a page that names them, not a fault of the fabric.
func TestThreeSlowNodesPageByName(t *testing.T) {
	f := fleet{nodes: 100, rails: 2, at: func(node, rail int, after time.Duration) condition {
		return condition{usually: usual, slow: node < 3 && rail == 1 && after >= quiet}
	}}
	all := evaluate(t, f, lasting)
	fired := firing(all)
	require.Len(t, fired["RDMASlowWorkRequests"], 3)
	for node, set := range fired["RDMASlowWorkRequests"] {
		assert.Equal(t, hostName(node), set.Get("host_name"))
		assert.Equal(t, deviceName(1), set.Get("rdma_device_name"))
		assert.Equal(t, cause, set.Get("rdma_slow_cause"))
	}
	assert.Empty(t, fired["RDMAFabricFault"])
	pages := to(notifications(t, shipped(t), all, lasting), "pager")
	require.Len(t, pages, 1)
	assert.Equal(t, map[string]int{"RDMASlowWorkRequests": 3}, pages[0].firing, "that they are outliers too says nothing new")
}

// A node that is slower than its peers on one rail is named, also where no request is
// slow by itself: because it always is.
func TestOutlierIsThePlantedNode(t *testing.T) {
	const planted, rail = 17, 3
	f := fleet{nodes: 64, rails: 8, at: func(node, of int, _ time.Duration) condition {
		c := condition{usually: usual * time.Duration(1+of%2)} // rails may differ
		if node == planted && of == rail {
			c.usually = 80 * time.Microsecond
		}
		return c
	}}
	fired := firing(evaluate(t, f, 5*time.Minute))
	require.Len(t, fired, 1)
	require.Len(t, fired["RDMANodeOutlier"], 1)
	assert.Equal(t, hostName(planted), fired["RDMANodeOutlier"][0].Get("host_name"))
	assert.Equal(t, deviceName(rail), fired["RDMANodeOutlier"][0].Get("rdma_device_name"))
}

// Every matcher of Alertmanager's configuration matches an alert that there is.
func TestRoutesAndInhibitionsMatchAlerts(t *testing.T) {
	conf := shipped(t)
	feed := newFeed(t, fleet{})
	sets := []map[string]string{}
	for _, group := range loadGroups(t, feed, &delivery{}) {
		for _, rule := range group.AlertingRules() {
			set := rule.Labels().Map()
			set["alertname"] = rule.Name()
			sets = append(sets, set)
			assert.Equal(t, time.Minute, rule.HoldDuration(), rule.Name())
		}
	}
	matched := func(matchers amcommoncfg.Matchers) bool {
		for _, set := range sets {
			ok := true
			for _, m := range matchers {
				ok = ok && m.Matches(set[m.Name])
			}
			if ok {
				return true
			}
		}
		return false
	}
	for _, route := range conf.Route.Routes {
		assert.True(t, matched(route.Matchers), "%v", route.Matchers)
	}
	for _, rule := range conf.InhibitRules {
		assert.True(t, matched(rule.SourceMatchers), "%v", rule.SourceMatchers)
		assert.True(t, matched(rule.TargetMatchers), "%v", rule.TargetMatchers)
	}
}
