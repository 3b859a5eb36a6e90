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
	// past collections are sent at once, so that there are rates from the beginning;
	// live ones follow for as long as an alert waits.
	past, live = 2, 6
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
func TestFleetThroughOneGateway(t *testing.T) {
	testbed.KeepThread(t)
	count, want := nodes(t), readDocument(t)
	prometheus := backend.StartPrometheus(t, rules, alerts)
	gateway := startGateway(t, prometheus)
	agents := startAgents(t, count, gateway.endpoint)

	begin := time.Now()
	for _, a := range agents {
		a.node.begin(begin.Add(-past * interval))
	}
	require.NoError(t, sendAll(t.Context(), agents, begin.Add(-(past+1)*interval), past))
	begin = time.Now()
	bytes, before, beforePrometheus := sent(agents), useOf(t, gateway.PID), useOf(t, prometheus.PID)
	require.NoError(t, sendAll(t.Context(), agents, begin, live))
	seconds := time.Since(begin).Seconds()
	after, afterPrometheus := useOf(t, gateway.PID), useOf(t, prometheus.PID)
	bytes = (sent(agents) - bytes) / int64(count*live)

	points := agents[0].node.metrics.DataPointCount()
	gateway.awaitWhole(t, prometheus, count*(past+live)*points)
	perNode := assertSeries(t, prometheus, count, int(want.series))
	assert.InEpsilon(t, want.compressed, bytes, 0.1, "bytes of a collection")
	assertPlantedNodeIsNamed(t, prometheus)

	t.Logf("%d nodes: %d series of each, %d bytes on the wire a collection", count, perNode, bytes)
	report(t, "gateway", count, seconds, before, after)
	report(t, "Prometheus", count, seconds, beforePrometheus, afterPrometheus)
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
