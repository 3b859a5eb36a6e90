package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// GPUAddresses returns the PCI address of each GPU of NVIDIA by its UUID, such as
// "GPU-6d1f2c3b-…", as NVIDIA's driver tells below /proc; none without the driver.
func GPUAddresses(proc string) (map[string]string, error) {
	directory := filepath.Join(proc, "driver", "nvidia", "gpus")
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the GPUs of NVIDIA's driver: %w", err)
	}
	addresses := map[string]string{}
	for _, entry := range entries {
		address := strings.ToLower(entry.Name())
		uuid := gpuUUID(optional(directory, entry.Name(), "information"))
		if isPCIAddress(address) && uuid != "" {
			addresses[uuid] = address
		}
	}
	return addresses, nil
}

// gpuUUID finds the UUID in what the driver prints of a GPU, "" without one: a GPU
// that was never used has question marks in its place.
func gpuUUID(information string) string {
	for line := range strings.Lines(information) {
		key, value, _ := strings.Cut(line, ":")
		uuid := strings.TrimSpace(value)
		if strings.TrimSpace(key) == "GPU UUID" && strings.HasPrefix(uuid, "GPU-") && !strings.Contains(uuid, "?") {
			return uuid
		}
	}
	return ""
}
