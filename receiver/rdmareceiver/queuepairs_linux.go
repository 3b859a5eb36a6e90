package rdmareceiver

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// listQueuePairs has the kernel list all queue pairs. To list one it queries it,
// which tells the probes of a running tracer of those that are older than it.
// Without an RDMA core there are none, and to ask would make the kernel load it.
func listQueuePairs(root string, logger *slog.Logger) {
	if _, err := os.Stat(filepath.Join(root, "sys/class/infiniband")); err != nil {
		return
	}
	resources, err := fabric.OpenResources()
	if err != nil {
		logger.Warn("queue pairs from before the start stay without the kernel's numbers", "error", err)
		return
	}
	defer func() { _ = resources.Close() }()
	qps, err := resources.QPs()
	if err != nil {
		logger.Warn("some queue pairs from before the start stay without the kernel's numbers", "listed_queue_pairs", len(qps), "error", err)
		return
	}
	logger.Debug("listed the queue pairs from before the start", "queue_pairs", len(qps))
}
