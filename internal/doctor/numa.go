package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// numaFacts are where devices and who uses them are.
type numaFacts struct {
	nodes   int
	devices []fabric.DeviceDetail
	// processes that have devices open, each bound to the nodes of its CPUs.
	processes []boundProcess
	// view is that of the collector, nil where there is none.
	view *radar.View
}

// boundProcess is a process and the nodes of the CPUs that it may run on.
type boundProcess struct {
	rdmaProcess
	nodes map[int]bool
}

func (s *System) checkNUMA(context.Context) []Finding {
	all, _ := s.inventory() // What it lacks the check of devices tells.
	f := numaFacts{nodes: s.nodes(), devices: all.devices, view: s.asked()}
	found, _ := s.processes()
	for _, p := range found.rdma {
		f.processes = append(f.processes, boundProcess{p, s.nodesOf(p.cpus)})
	}
	return judgeNUMA(f)
}

// nodes counts the NUMA nodes with CPUs.
func (s *System) nodes() (n int) {
	entries, err := os.ReadDir(filepath.Join(s.root, "sys/devices/system/node"))
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "node") && s.line(filepath.Join("sys/devices/system/node", entry.Name(), "cpulist")) != "" {
			n++
		}
	}
	return n
}

// nodesOf are the nodes of CPUs.
func (s *System) nodesOf(cpus []fabric.CPURange) map[int]bool {
	nodes := map[int]bool{}
	for _, r := range cpus {
		for cpu := r.First; cpu <= min(r.Last, r.First+maxCPUs); cpu++ {
			if node, ok := s.fabric.CPUNode(cpu); ok {
				nodes[node] = true
			}
		}
	}
	return nodes
}

// maxCPUs is more than the kernel has (CONFIG_NR_CPUS).
const maxCPUs = 8192

func judgeNUMA(f numaFacts) []Finding {
	if f.nodes < 2 {
		return []Finding{{What: "this machine has one NUMA node"}}
	}
	findings := []Finding{{What: fmt.Sprintf("this machine has %d NUMA nodes", f.nodes)}}
	var unknown []of
	places := map[string]int{}
	for i := range f.devices {
		d := &f.devices[i]
		switch {
		case d.NUMANode != nil:
			places[d.Name] = *d.NUMANode
		case d.PCI != nil:
			unknown = append(unknown, of{d.Name, Finding{
				Level: Note, What: "the firmware does not say on which NUMA node it is", Means: "Whether threads are near it cannot be told.",
				Do: "Look for an update of the machine's firmware, or for NUMA in its setup.",
			}})
		}
	}
	findings = append(findings, grouped(unknown)...)
	words := cause("numa_misplacement")
	for _, p := range f.processes {
		if node, ok := p.far(places); ok {
			findings = append(findings, Finding{
				Level: Warning, What: fmt.Sprintf("%s may run on NUMA node %s only, and %s is on %d", p.who(), numbersOf(p.nodes), list(p.devices), node),
				Means: words.Happens, Do: words.Remedy,
			})
		}
	}
	if n := crossing(f.view); n > 0 {
		findings = append(findings, Finding{
			Level: Note, What: plural(n, "queue is", "queues are") + " polled by a thread on another NUMA node than the device's",
			Means: words.Happens, Do: words.Remedy + " rdmaradar top --filter numa shows them.",
		})
	}
	return findings
}

// far is the node of the devices that a process has open, if it may not run on any of
// theirs.
func (p *boundProcess) far(places map[string]int) (node int, far bool) {
	for _, device := range p.devices {
		at, known := places[device]
		if !known || p.nodes[at] {
			return 0, false
		}
		node = at
	}
	return node, len(p.devices) > 0 && len(p.nodes) > 0
}

func numbersOf(nodes map[int]bool) string {
	var all []string
	for node := range nodes {
		all = append(all, fmt.Sprint(node))
	}
	return list(all)
}

// crossing counts the queues that are polled on another node than their device's.
func crossing(view *radar.View) (n int) {
	if view == nil {
		return 0
	}
	nodes := map[string]int{}
	for _, d := range view.Machine.Devices {
		if d.Node != nil {
			nodes[d.Name] = *d.Node
		}
	}
	t := &view.Queues
	for i := range t.QP {
		if i >= len(t.Node) || i >= len(t.Device) || t.Device[i] < 0 || t.Device[i] >= len(t.Devices) || t.Node[i] < 0 {
			continue
		}
		if node, ok := nodes[t.Devices[t.Device[i]]]; ok && node != t.Node[i] {
			n++
		}
	}
	return n
}
