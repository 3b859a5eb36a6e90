package rdmareceiver

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// handLister lists what the test says.
type handLister struct {
	qps            []fabric.QPResource
	mrs            []fabric.MRResource
	errQPs, errMRs error
	listed, closed int
}

func (l *handLister) QPs() ([]fabric.QPResource, error) {
	l.listed++
	return l.qps, l.errQPs
}

func (l *handLister) MRs() ([]fabric.MRResource, error) {
	l.listed++
	return l.mrs, l.errMRs
}

func (l *handLister) Close() error {
	l.closed++
	return nil
}

func TestListQueuePairs(t *testing.T) {
	two := []fabric.QPResource{{Device: "rxa", Number: 17}, {Device: "rxb", Number: 17}}
	for name, tc := range map[string]struct {
		lister  *handLister
		openErr error
		says    []string
	}{
		"all of them": {
			lister: &handLister{qps: two, mrs: make([]fabric.MRResource, 3)},
			says:   []string{"listed", "queue_pairs=2", "memory_regions=3"},
		},
		"a device does not answer": {
			lister: &handLister{qps: two[:1], errQPs: errors.New("dump of rxb"), mrs: make([]fabric.MRResource, 3)},
			says:   []string{"queue_pairs=1", "memory_regions=3", "dump of rxb"},
		},
		"no memory regions": {
			lister: &handLister{qps: two, errMRs: errors.New("regions of rxb")},
			says:   []string{"queue_pairs=2", "memory_regions=0", "regions of rxb"},
		},
		"no netlink": {lister: &handLister{}, openErr: errors.New("no socket"), says: []string{"without the kernel's numbers", "no socket"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(root, "sys/class/infiniband"), 0o755))
			var log bytes.Buffer
			open := func() (resourceLister, error) { return tc.lister, tc.openErr }
			listQueuePairs(root, open, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			for _, words := range tc.says {
				assert.Contains(t, log.String(), words)
			}
			if tc.openErr != nil {
				assert.Zero(t, tc.lister.listed+tc.lister.closed)
				return
			}
			assert.Equal(t, 2, tc.lister.listed)
			assert.Equal(t, 1, tc.lister.closed)
		})
	}
}

// Asking would make the kernel load its RDMA core.
func TestListQueuePairsAsksNoKernelWithoutRDMA(t *testing.T) {
	open := func() (resourceLister, error) {
		t.Error("the kernel was asked")
		return nil, errors.New("none")
	}
	listQueuePairs(t.TempDir(), open, slog.New(slog.DiscardHandler))
}
