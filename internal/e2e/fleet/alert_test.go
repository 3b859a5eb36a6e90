//go:build backends

package fleet

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	rules  = "../../../config/prometheus/rdma-recording.yaml"
	alerts = "../../../config/prometheus/rdma-alerts.yaml"

	// planted is the number of the node of which one device is slower than those of
	// its peers.
	planted       = 17
	plantedDevice = "mlx5_4"
)

// assertPlantedNodeIsNamed waits for the alert on what is slower than its peers, and
// checks that it is the one device of the one node, and that nothing else pages. There
// are tickets: one device of the recorded node has half of its PCIe lanes.
func assertPlantedNodeIsNamed(t *testing.T, prometheus *backend.Prometheus) {
	t.Helper()
	var firing model.Vector
	require.Eventually(t, func() bool {
		firing = prometheus.Query(t, `ALERTS{alertstate="firing", severity="page"}`)
		return len(firing) > 0
	}, testbed.Patience, time.Second, "nobody is paged")
	require.Len(t, firing, 1)
	named := firing[0].Metric
	assert.Equal(t, "RDMANodeOutlier", string(named["alertname"]))
	assert.Equal(t, hostName(planted), string(named["host_name"]))
	assert.Equal(t, plantedDevice, string(named["rdma_device_name"]))
}
