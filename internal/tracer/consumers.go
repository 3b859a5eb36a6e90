package tracer

import (
	"context"
	"fmt"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// watchKernelVerbs probes the drivers' verbs in the kernel as they are loaded.
func (t *Tracer) watchKernelVerbs(ctx context.Context) {
	every(ctx, coreInterval, func() { t.kernel.refresh(ctx) })
}

// newLibrary takes an element of the map of libraries for the driver of a device.
func (t *Tracer) newLibrary() (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.libraries.cookies) == 0 {
		return 0, fmt.Errorf("%d libraries and drivers are probed already", t.side.libraries.length)
	}
	cookie := t.libraries.cookies[0]
	t.libraries.cookies = t.libraries.cookies[1:]
	return cookie, t.side.libraries.store(cookie, &bpf.TrackerLibrary{})
}

func (t *Tracer) freeLibrary(cookie uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.libraries.cookies = append(t.libraries.cookies, cookie)
	return nil
}

// ConsumerName is the name of the module of a consumer in the kernel, such as
// "nvme_rdma"; "" when it is not known.
func (t *Tracer) ConsumerName(id verbs.ProcessID) string {
	if !id.InKernel() {
		return ""
	}
	name, err := t.kernel.consumer(id)
	if err != nil {
		t.log.Warn("the consumers in the kernel are not all known by name", "error", err)
	}
	return name
}

// consumer is the name of the module of a consumer in the kernel, "" when it is
// not known.
func (k *kernelVerbs) consumer(id verbs.ProcessID) (string, error) {
	index := id.TGID &^ verbs.KernelTGID
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, ok := k.names[index]; ok || index == 0 || k.side == nil {
		return name, nil
	}
	names := map[uint32]string{}
	var name bpf.KverbsConsumerName
	var at uint32
	entries := k.side.collection.Maps[bpf.KverbsMapConsumers].Iterate()
	for entries.Next(&name, &at) {
		names[at] = commName(name.Text[:])
	}
	if err := entries.Err(); err != nil {
		return "", fmt.Errorf("reading the consumers of kernel verbs: %w", err)
	}
	k.names = names
	return names[index], nil
}

// noThread is the bit of a thread id that stands for an interrupt or an idle CPU,
// NO_THREAD of bpf/types.h.
const noThread = 1 << 31

// kernelThread leaves out what is not a thread.
func kernelThread(t verbs.Thread) verbs.Thread {
	if t.TID&noThread != 0 {
		return verbs.Thread{}
	}
	return t
}

// kernelCQ is the number of a CQ of a consumer in the kernel, by what stands for
// its address (cq_identity() in bpf/kernel_reader.h).
func kernelCQ(identity uint64) (number uint32, ok bool) {
	return uint32(identity), identity != 0
}

// describeConsumer replaces what stands for addresses in the kernel, which are
// shown to nobody.
func describeConsumer(wr *verbs.WorkRequest) {
	wr.CQNumber, wr.HasCQNumber = kernelCQ(wr.CQ)
	wr.CQ, wr.WRID = 0, 0
	wr.Poster = kernelThread(wr.Poster)
}

// threadName reads the name of a thread, "" when it is gone.
func (t *Tracer) threadName(process verbs.ProcessID, tid uint32) string {
	owner := process.TGID
	if process.InKernel() {
		// Threads that use the kernel's verbs are of any process, or of none.
		owner = tid
	}
	if tid == 0 || tid&noThread != 0 {
		return ""
	}
	name, err := t.threads.ThreadName(int(owner), int(tid))
	if err != nil {
		return ""
	}
	return name
}
