package rdmareceiver

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// resourceLister has the kernel list queue pairs and memory regions.
type resourceLister interface {
	QPs() ([]fabric.QPResource, error)
	MRs() ([]fabric.MRResource, error)
	Close() error
}

func openResources() (resourceLister, error) { return fabric.OpenResources() }

// listQueuePairs has the kernel list all queue pairs and memory regions, which tells
// the probes of a running tracer of those that are older than it. Without an RDMA
// core there are none, and to ask would make the kernel load it.
func listQueuePairs(root string, open func() (resourceLister, error), logger *slog.Logger) {
	if _, err := os.Stat(filepath.Join(root, "sys/class/infiniband")); err != nil {
		return
	}
	resources, err := open()
	if err != nil {
		logger.Warn("queue pairs and memory regions from before the start stay without the kernel's numbers", "error", err)
		return
	}
	defer func() { _ = resources.Close() }()
	qps, errQPs := resources.QPs()
	mrs, errMRs := resources.MRs()
	if err := errors.Join(errQPs, errMRs); err != nil {
		logger.Warn("some queue pairs or memory regions from before the start stay without the kernel's numbers",
			"listed_queue_pairs", len(qps), "listed_memory_regions", len(mrs), "error", err)
		return
	}
	logger.Debug("listed the resources from before the start", "queue_pairs", len(qps), "memory_regions", len(mrs))
}
