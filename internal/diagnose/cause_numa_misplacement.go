package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// crossing is more than a few accesses take across the link between two nodes
// that is not overloaded.
const crossing = 10 * time.Microsecond

// numaMisplacement is the name of the cause.
const numaMisplacement = "numa_misplacement"

func numaMisplacementCause() Cause {
	return Cause{
		Name:    numaMisplacement,
		Title:   "thread, memory or GPU far from the NIC",
		Happens: "The thread that posts or polls runs on another NUMA node than the NIC's, or the GPU is behind another one: doorbells, completions and data cross the link between the nodes. That costs a little always, and much when the link is busy.",
		Needs:   "the NUMA nodes of the NIC and of the CPUs where the threads ran, or the GPU's place",
		For: []string{
			"The poller or the poster ran on another node than the NIC's for all slow requests.",
			"The GPU whose memory it was is behind another host bridge or node (NODE, SYS).",
			"The poller had moved to another CPU and the requests are late by microseconds only, or the NIC waited for PCIe meanwhile.",
		},
		Against: []string{
			"Threads and GPU are on the NIC's node.",
			"The requests are late by much more than a crossing takes, or the threads have not moved, and the NIC did not wait for PCIe: possible at most, and where both is so, a remark beside what else is the cause.",
			"The poller was off its CPU, or polls found completions late for other reasons.",
		},
		CannotTell:   "where the buffers in host memory are; whether a thread that moved was near before; and a placement that is always so explains no sudden change. It is never more than possible where the NIC did not wait for PCIe.",
		Confirm:      "`cat /sys/class/infiniband/DEVICE/device/numa_node`, `ps -L -o tid,psr -p PID`, `numastat -p PID`, `nvidia-smi topo -m`.",
		Remedy:       "Bind the process and its memory to the NIC's node (numactl --cpunodebind --membind), and let each GPU use the NIC next to it.",
		Source:       []string{"https://github.com/NVIDIA/nccl/issues/1017", "https://github.com/meta-pytorch/torchcomms/pull/2808", "https://github.com/sgl-project/sglang/pull/11028"},
		Proven:       Recorded,
		Consequences: []string{"pcie_back_pressure", "network_delay"},
		judge:        judgeNUMAMisplacement,
	}
}

func judgeNUMAMisplacement(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() || len(c.requests) == 0 {
		return c.not()
	}
	if !c.noteMisplaced() {
		return c.not()
	}
	late := median(c.delays)
	moved := c.migrations() > 0
	if moved && len(c.delays) > 0 && late <= crossing {
		c.supports("delay", "requests were late by %s, as a crossing makes them, and the poller had moved", short(late))
		c.misses(Possible, "whether the poller was near the NIC before it moved")
		return c.is(Possible, 1)
	}
	stalled := *c
	if confidence, explains := stalled.weighStalls(); confidence >= Likely {
		return stalled.is(Likely, explains)
	}
	// What is always so is a part of what is normal.
	if !moved && late > crossing {
		c.opposes(None, "delay", "requests were late by %s, and the threads had not moved", short(late))
		return c.not()
	}
	c.opposes(Possible, "delay", "requests were late by %s", short(late))
	return c.is(Possible, 0)
}

func (c *networkCase) migrations() (n uint32) {
	for _, r := range c.requests {
		n += r.PollerScheduling.Migrations
	}
	return n
}

// noteMisplaced reports whether a thread or the GPU is far from the NIC.
func (c *networkCase) noteMisplaced() bool {
	if c.Device == nil {
		return false
	}
	far := false
	if r := c.Device.GPU; r == fabric.RelationSYS || r == fabric.RelationNODE {
		c.supports("gpu.relation", "the GPU is behind another host bridge than the NIC (%s)", r)
		far = true
	}
	if c.Device.NUMANode == nil || c.Device.Nodes == nil {
		if !far {
			c.misses(None, "the NUMA nodes of the NIC and of the CPUs")
		}
		return far
	}
	for _, of := range threadsOfRequests() {
		if node, ok := c.farNode(of.thread); ok {
			c.supports(of.name+".node", "the %s ran on NUMA node %d, the NIC is on %d", of.name, node, *c.Device.NUMANode)
			far = true
		}
	}
	return far
}

// threadOfRequests is one of the threads that have to do with a request.
type threadOfRequests struct {
	name   string
	thread func(*verbs.Completion) verbs.Thread
}

func threadsOfRequests() []threadOfRequests {
	return []threadOfRequests{
		{"poller", func(r *verbs.Completion) verbs.Thread { return r.Poller }},
		{"poster", func(r *verbs.Completion) verbs.Thread { return r.Poster }},
	}
}

// farNode is the node on which a thread ran for all slow requests, if it is known
// and not the NIC's.
func (c *networkCase) farNode(thread func(*verbs.Completion) verbs.Thread) (node int, ok bool) {
	for _, r := range c.requests {
		t := thread(r)
		if t.TID == 0 {
			return 0, false
		}
		if node, ok = c.Device.Nodes(t.CPU); !ok || node == *c.Device.NUMANode {
			return 0, false
		}
	}
	return node, ok
}
