package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	vendorNVIDIA = 0x10de
	// The classes of display and 3D controllers without the programming
	// interface, their lowest byte.
	classDisplay = 0x0300
	class3D      = 0x0302
)

// GPUs returns the GPUs of NVIDIA in the order of their PCI addresses, which is
// that of nvidia-smi.
func (r *Reader) GPUs() ([]PCIDevice, error) {
	entries, err := os.ReadDir(filepath.Join(r.root, "bus", "pci", "devices"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list PCI functions: %w", err)
	}
	var gpus []PCIDevice
	for _, entry := range entries {
		if !r.isGPU(entry.Name()) {
			continue
		}
		gpu, err := r.PCI(entry.Name())
		if unplugged(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		gpus = append(gpus, gpu)
	}
	return gpus, nil
}

func (r *Reader) isGPU(address string) bool {
	path := r.pciPath(address)
	if hexadecimal(optional(path, "vendor")) != vendorNVIDIA {
		return false
	}
	class := hexadecimal(optional(path, "class")) >> 8
	return class == classDisplay || class == class3D
}

func (r *Reader) pciPath(address string) string {
	return filepath.Join(r.root, "bus", "pci", "devices", address)
}
