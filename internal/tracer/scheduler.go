package tracer

import (
	"fmt"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// What the scheduler did with the threads that post and poll is noted in the
// kernel: when they left their CPU and came back, and when they were woken.

// switchPrograms follow threads on and off their CPUs. They stand all the time:
// the first slow completion already tells where its thread was, and at completion
// sites they are the evidence of a late poller.
var switchPrograms = []string{bpf.TrackerProgSchedWaking, bpf.TrackerProgSchedSwitch}

// attachScheduler attaches the programs that note what the scheduler does.
func (k *kernelSide) attachScheduler() error {
	for _, name := range switchPrograms {
		l, err := link.AttachTracing(link.TracingOptions{Program: k.collection.Programs[name]})
		if err != nil {
			return fmt.Errorf("attaching to a tracepoint for the program %s: %w", name, err)
		}
		k.system = append(k.system, l)
	}
	return nil
}
