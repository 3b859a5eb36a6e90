package rdmareceiver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The memory of a GPU that is known has an address and a distance from each device;
// of any other only the UUID is known.
func TestGPUsOfTwoSockets(t *testing.T) {
	proc := fabrictest.LayOut(t, `
		driver/nvidia/gpus/0000:1b:00.0/information = GPU UUID: GPU-00000000-0000-0000-0000-000000000001
		driver/nvidia/gpus/0000:ff:00.0/information = GPU UUID: GPU-00000000-0000-0000-0000-00000000000f`)
	gpus := newGPUs(fabric.NewReader(fabrictest.Tree(t, fabrictest.TwoSockets)), proc)
	for _, test := range []struct {
		gpu, device string
		want        map[string]any
	}{
		{"1", "mlx5_0", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0", attributeGPURelation: "PXB"}},
		{"1", "mlx5_3", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0", attributeGPURelation: "NODE"}},
		{"1", "mlx5_6", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0", attributeGPURelation: "SYS"}},
		{"1", "rxe0", map[string]any{attributeGPUPCIAddress: "0000:1b:00.0"}},
		{"f", "mlx5_0", map[string]any{attributeGPUPCIAddress: "0000:ff:00.0"}},
		{"2", "mlx5_0", map[string]any{}},
	} {
		uuid := "GPU-00000000-0000-0000-0000-00000000000" + test.gpu
		test.want[attributeGPUUUID], test.want[attributeMemoryKind] = uuid, "peer"
		for range 2 {
			attributes := pcommon.NewMap()
			putMemory(attributes, verbs.Memory{Kind: verbs.MemoryPeer, GPU: uuid}, test.device, machineTopology{gpuTopology: gpus})
			assert.Equal(t, test.want, attributes.AsRaw(), "%s and %s", test.gpu, test.device)
		}
	}
}

// The driver is asked for a GPU that it did not name, and not each time.
func TestGPUListAge(t *testing.T) {
	asked, now := 0, time.Unix(1000, 0)
	g := gpuTopology{
		now:     func() time.Time { return now },
		address: func(string) string { return "" },
		list: func() (map[string]string, error) {
			asked++
			if asked == 2 {
				return nil, errors.New("the driver is being unloaded")
			}
			return map[string]string{"GPU-1": "0000:1b:00.0"}, nil
		},
	}
	where := func(uuid string) string {
		address, _ := g.GPU(uuid, "mlx5_0")
		return address
	}
	for range 100 {
		assert.Equal(t, "0000:1b:00.0", where("GPU-1"))
		assert.Empty(t, where("GPU-2"))
	}
	assert.Equal(t, 1, asked)
	now = now.Add(gpuListAge + time.Second)
	assert.Empty(t, where("GPU-2"))
	assert.Equal(t, "0000:1b:00.0", where("GPU-1"), "what was known is kept")
	assert.Equal(t, 2, asked)
}
