package fabric

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func TestDevicePCIAddress(t *testing.T) {
	for _, test := range []struct{ tree, device, want string }{
		{fabrictest.TwoSockets, "mlx5_0", "0000:18:00.0"},
		{fabrictest.TwoSockets, "mlx5_11", "0000:dc:00.0"},
		{fabrictest.TwoSockets, "mlx5_99", ""},
		{fabrictest.TwoSockets, "../mlx5_0", ""},
		{fabrictest.SoftRoCE, "rxe0", ""},
	} {
		assert.Equal(t, test.want, recorded(t, test.tree).DevicePCIAddress(test.device), "%s %s", test.tree, test.device)
	}
}
