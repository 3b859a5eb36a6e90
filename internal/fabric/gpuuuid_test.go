package fabric

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

// Composed after what NVIDIA's driver prints.
func TestGPUAddresses(t *testing.T) {
	proc := fabrictest.LayOut(t, `
		driver/nvidia/gpus/0000:1B:00.0/information = Model:   NVIDIA H100\nIRQ:     18\nGPU UUID:  GPU-deadbeef-0102-0304-0506-0708090a0b0c\nBus Location:  0000:1b:00.0\nDevice Minor:  0
		driver/nvidia/gpus/0000:9d:00.0/information = GPU UUID:  GPU-????????-????-????-????-????????????
		driver/nvidia/gpus/0000:9e:00.0/information = Model:   NVIDIA H100
		driver/nvidia/gpus/0000:9f:00.0/
		driver/nvidia/gpus/others/information = GPU UUID: GPU-deadbeef-0102-0304-0506-0708090a0b0d`)
	addresses, err := GPUAddresses(proc)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"GPU-deadbeef-0102-0304-0506-0708090a0b0c": "0000:1b:00.0"}, addresses)
}

func TestGPUAddressesWithoutDriver(t *testing.T) {
	addresses, err := GPUAddresses(t.TempDir())
	require.NoError(t, err)
	assert.Empty(t, addresses)
	_, err = GPUAddresses(fabrictest.LayOut(t, "driver/nvidia/gpus = no directory"))
	assert.ErrorContains(t, err, "NVIDIA")
}
