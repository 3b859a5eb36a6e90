//go:build backends

package fleet

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	// collections are sent by each node, in as many intervals: two until there are
	// rates, and then an alert waits for a minute. On a busy machine that takes longer,
	// and there are more, up to a bound.
	collections, mostCollections = 7, 20

	collectionsOfDay = int64(24 * time.Hour / interval)
)

// nodes is how many nodes the fleet has, 200 unless FLEET_NODES is set.
func nodes(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv("FLEET_NODES")
	if !set {
		return 200
	}
	count, err := strconv.Atoi(text)
	require.NoError(t, err, "FLEET_NODES")
	require.Greater(t, count, planted, "FLEET_NODES: the planted node is number %d", planted)
	return count
}

func startAgents(t *testing.T, count int, gateway string) []*agent {
	t.Helper()
	recorded, growths := readRecording(t)
	agents := make([]*agent, 0, count)
	for i := range count {
		n := newNode(i, recorded, growths)
		if i == planted {
			n.slow(plantedDevice)
		}
		agents = append(agents, newAgent(t, n, gateway))
	}
	return agents
}

// A fleet through one gateway to Prometheus is as many series and bytes as the document
// says, every node has its own, and the rules name the one that is slower than its peers.
// So are the spans and verdicts of those that have trouble.
func TestFleetThroughOneGateway(t *testing.T) {
	t.Parallel()
	testbed.KeepThread(t)
	count, want := nodes(t), readDocument(t)
	prometheus := backend.StartPrometheus(t, rules, alerts)
	gateway := startGateway(t, prometheus)
	agents := startAgents(t, count, gateway.endpoint)

	begin, before, prometheusBefore := time.Now(), useOf(t, gateway.PID), useOf(t, prometheus.PID)
	for _, a := range agents {
		a.node.begin(begin)
	}
	troubles := make(chan error, 1)
	inTrouble := startTroubled(t, max(count/oneIn, 1), gateway.endpoint)
	go func() { troubles <- sendTroubles(t.Context(), inTrouble, collections*int(interval/time.Second)) }()
	require.NoError(t, sendAll(t.Context(), agents, begin, collections))
	require.NoError(t, <-troubles)
	seconds, after, prometheusAfter := time.Since(begin).Seconds(), useOf(t, gateway.PID), useOf(t, prometheus.PID)
	bytes := sent(agents) / int64(count*collections)

	rounds := collections
	for ; len(pages(t, prometheus)) == 0 && rounds < mostCollections; rounds++ {
		require.NoError(t, sendAll(t.Context(), agents, begin.Add(time.Duration(rounds)*interval), 1))
	}
	assertPlantedNodeIsNamed(t, prometheus)
	gateway.awaitWhole(t, prometheus, count*rounds*agents[0].node.metrics.DataPointCount())
	assertTroubles(t, inTrouble, gateway)
	perNode := assertSeries(t, prometheus, count, int(want.series))
	assert.InEpsilon(t, want.compressed, bytes*collectionsOfDay, 0.1, "bytes of a day on the wire")

	t.Logf("%d nodes: %d series of each, %d bytes on the wire a collection, %d MB a day", count, perNode, bytes, bytes*collectionsOfDay/1e6)
	report(t, "gateway", count, seconds, before, after)
	report(t, "Prometheus", count, seconds, prometheusBefore, prometheusAfter)
}

func report(t *testing.T, who string, count int, seconds float64, before, after use) {
	t.Helper()
	cores := (after.cpu - before.cpu) / seconds
	t.Logf("%s: %.2f cores and %d MB, which is %.2f ms of CPU a second and %d KB for each node", who,
		cores, after.memory/1e6, 1000*cores/float64(count), after.memory/1e3/count)
}

// assertSeries checks that Prometheus has that many series of each node and no others
// but those of rules, and returns the number.
func assertSeries(t *testing.T, prometheus *backend.Prometheus, count, each int) int {
	t.Helper()
	of := map[model.LabelValue]int{}
	for _, series := range prometheus.Query(t, `count by (host_name) ({host_name!="", __name__!~".*:.*|ALERTS.*"})`) {
		of[series.Metric["host_name"]] = int(series.Value)
	}
	assert.Len(t, of, count)
	for i := range count {
		assert.Equal(t, each, of[model.LabelValue(hostName(i))], hostName(i))
	}
	head := int(total(t, prometheus.URL+"/metrics", "prometheus_tsdb_head_series")) - seriesOfRules(t, prometheus)
	assert.Equal(t, count*each, head, "series in the head but those of rules")
	return head / count
}

// seriesOfRules is how many series the head has that rules made.
func seriesOfRules(t *testing.T, prometheus *backend.Prometheus) int {
	t.Helper()
	status, err := prometheus.API.TSDB(t.Context(), v1.WithLimit(10_000))
	require.NoError(t, err)
	made := 0
	for _, metric := range status.SeriesCountByMetricName {
		if strings.Contains(metric.Name, ":") || strings.HasPrefix(metric.Name, "ALERTS") {
			made += int(metric.Value)
		}
	}
	return made
}
