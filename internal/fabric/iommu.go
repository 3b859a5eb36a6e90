package fabric

import (
	"os"
	"path/filepath"
)

// IOMMUMode is what stands between a device and memory.
type IOMMUMode string

// The modes of an IOMMU, "" when it is not known.
const (
	// IOMMUOff: the machine uses none.
	IOMMUOff IOMMUMode = "off"
	// IOMMUPassthrough: addresses are not translated (iommu=pt).
	IOMMUPassthrough IOMMUMode = "passthrough"
	// IOMMUStrict and IOMMULazy: every access of the device is translated;
	// stale translations are flushed at once or together later.
	IOMMUStrict IOMMUMode = "strict"
	IOMMULazy   IOMMUMode = "lazy"
	// IOMMUBlocked: the device may access nothing until a driver says what.
	IOMMUBlocked IOMMUMode = "blocked"
)

// iommuMode follows the type of the function's group:
// Documentation/ABI/testing/sysfs-kernel-iommu_groups of the kernel.
func (r *Reader) iommuMode(function string) IOMMUMode {
	switch optional(function, "iommu_group", "type") {
	case "identity":
		return IOMMUPassthrough
	case "DMA":
		return IOMMUStrict
	case "DMA-FQ":
		return IOMMULazy
	case "blocked":
		return IOMMUBlocked
	case "":
	default:
		return ""
	}
	units, err := os.ReadDir(filepath.Join(r.root, "class", "iommu"))
	if err == nil && len(units) == 0 {
		return IOMMUOff
	}
	return ""
}
