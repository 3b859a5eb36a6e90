package rdmareceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// What is near to what is known of two sockets, and not guessed of a machine that
// does not say.
func TestLocalityOfRecordedTrees(t *testing.T) {
	for _, test := range []struct {
		tree   string
		device string
		cpu    uint32
		want   map[string]any
	}{
		{fabrictest.TwoSockets, "mlx5_11", 60, map[string]any{attributeDeviceNode: int64(1), attributeCPUNode: int64(1), attributeLocality: "local"}},
		{fabrictest.TwoSockets, "mlx5_11", 3, map[string]any{attributeDeviceNode: int64(1), attributeCPUNode: int64(0), attributeLocality: "remote"}},
		{fabrictest.TwoSockets, "mlx5_0", 0, map[string]any{attributeDeviceNode: int64(0), attributeCPUNode: int64(0), attributeLocality: "local"}},
		{fabrictest.TwoSockets, "mlx5_0", 999, map[string]any{attributeDeviceNode: int64(0)}},
		{fabrictest.SingleRoCE, "mlx5_0", 3, map[string]any{attributeCPUNode: int64(0)}},
		{fabrictest.NoRDMA, "mlx5_0", 0, map[string]any{attributeCPUNode: int64(0)}},
	} {
		topology := fabric.NewReader(fabrictest.Tree(t, test.tree))
		attributes := pcommon.NewMap()
		putPoster(attributes, verbs.Thread{TID: 7, CPU: test.cpu}, test.device, machineTopology{numaNodes: topology})
		got := map[string]any{}
		for _, key := range []string{attributeDeviceNode, attributeCPUNode, attributeLocality} {
			if value, ok := attributes.Get(key); ok {
				got[key] = value.AsRaw()
			}
		}
		assert.Equal(t, test.want, got, "%s %s CPU %d", test.tree, test.device, test.cpu)
	}
}
