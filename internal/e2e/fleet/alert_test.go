//go:build backends

package fleet

import (
	"strconv"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
)

const (
	rules  = "../../../config/prometheus/rdma-recording.yaml"
	alerts = "../../../config/prometheus/rdma-alerts.yaml"

	// planted is the number of the node of which one device is slower than those of
	// its peers.
	planted       = 17
	plantedDevice = "mlx5_4"
)

// pages are the alerts that wake somebody. Nothing else is looked at: there are tickets,
// as one device of the recorded node has half of its PCIe lanes.
func pages(t *testing.T, prometheus *backend.Prometheus) model.Vector {
	t.Helper()
	return prometheus.Query(t, `ALERTS{alertstate="firing", severity="page"}`)
}

// assertPlantedNodeIsNamed checks that what is slower than its peers is all that pages,
// and that it is the one device of the one node.
func assertPlantedNodeIsNamed(t *testing.T, prometheus *backend.Prometheus) {
	t.Helper()
	firing := pages(t, prometheus)
	require.Len(t, firing, 1)
	named := firing[0].Metric
	assert.Equal(t, "RDMANodeOutlier", string(named["alertname"]))
	assert.Equal(t, hostName(planted), string(named["host_name"]))
	assert.Equal(t, plantedDevice, string(named["rdma_device_name"]))
	assert.Equal(t, strconv.Itoa(firstJob), string(named["slurm_job_id"]))
}
