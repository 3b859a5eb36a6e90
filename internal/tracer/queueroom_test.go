package tracer

import (
	"os"
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// The bound of memory is for requests: there is room for as many queues whatever it is,
// and who is told that there is none is told that number, and not to raise the bound.
func TestRoomForQueuesDoesNotDependOnTheBound(t *testing.T) {
	const room = 4096
	for _, bound := range []uint64{defaultMapBytes, 4096 << 20} {
		spec := defaultSpec(t)
		if err := sizePools(spec, bound, 2); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{bpf.TrackerMapQueues, bpf.TrackerMapQueueIndex} {
			if got := spec.Maps[name].MaxEntries; got != room {
				t.Errorf("%d MiB: %s has room for %d, want %d", bound>>20, name, got, room)
			}
		}
	}
	for _, document := range []string{"../../docs/slow-job.md", "../../docs/backends.md", "../../config/prometheus/rdma-alerts.yaml"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(text), "RDMAQueuesUntracked")
		if !found {
			t.Fatalf("%s does not name the alert", document)
		}
		about, _, _ := strings.Cut(after, "RDMATrafficUntraced")
		if !strings.Contains(about, "4,096") || strings.Contains(strings.ToLower(about), "raise") {
			t.Errorf("%s does not say what helps where queues find no room:%s", document, about)
		}
	}
}
