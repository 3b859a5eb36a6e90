package fabric

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxNodes is the kernel's largest number of NUMA nodes (CONFIG_NODES_SHIFT 10).
const maxNodes = 1 << 10

// numaNode is the node of a device, nil when it is −1: the firmware gave none.
func numaNode(device string) *int {
	if device == "" {
		return nil
	}
	text, err := attribute(device, "numa_node")
	if err != nil {
		return nil
	}
	node, err := strconv.Atoi(text)
	if err != nil || node < 0 || node >= maxNodes {
		return nil
	}
	return &node
}

// CPUNode is the NUMA node of a logical CPU; false when it is not known, or
// when the CPU is listed in several nodes (numa=fake).
func (r *Reader) CPUNode(cpu int) (int, bool) {
	return r.numa.node(r.root, cpu)
}

// numa remembers which CPUs are in which node.
type numa struct {
	mu    sync.Mutex
	nodes []nodeCPUs
}

type nodeCPUs struct {
	node int
	cpus []CPURange
}

// node reads the lists again when the CPU is in none, as it may have been
// offline before.
func (n *numa) node(root string, cpu int) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.find(cpu)
	if len(found) == 0 {
		n.nodes = readNodes(root)
		found = n.find(cpu)
	}
	if len(found) != 1 {
		return 0, false
	}
	return found[0], true
}

func (n *numa) find(cpu int) []int {
	var nodes []int
	for _, node := range n.nodes {
		if slices.ContainsFunc(node.cpus, func(c CPURange) bool { return c.contains(cpu) }) {
			nodes = append(nodes, node.node)
		}
	}
	return nodes
}

// readNodes leaves out nodes it cannot read: a CPU there is then not known.
func readNodes(root string) []nodeCPUs {
	directory := filepath.Join(root, "devices", "system", "node")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil
	}
	var nodes []nodeCPUs
	for _, entry := range entries {
		number, isNode := strings.CutPrefix(entry.Name(), "node")
		node, err := strconv.ParseUint(number, 10, 10)
		if !isNode || err != nil {
			continue
		}
		text, err := readSome(filepath.Join(directory, entry.Name(), "cpulist"), cpuListLimit)
		if err != nil {
			continue
		}
		cpus, err := parseCPUList(text)
		if err != nil {
			continue
		}
		nodes = append(nodes, nodeCPUs{node: int(node), cpus: cpus})
	}
	return nodes
}

// cpuListLimit bounds a cpulist, which may be longer than a page: the kernel's
// 8192 CPUs listed one by one take 39 KiB.
const cpuListLimit = 64 << 10

// CPURange is an inclusive range of logical CPUs; it is never expanded.
type CPURange struct{ First, Last int }

func (c CPURange) contains(cpu int) bool { return c.First <= cpu && cpu <= c.Last }

// ParseCPUList returns the CPUs of a list such as "0-55,112-167", which need not be
// trusted; nil for one that is none.
func ParseCPUList(text string) []CPURange {
	if len(text) > cpuListLimit {
		return nil
	}
	ranges, err := parseCPUList(text)
	if err != nil {
		return nil
	}
	return ranges
}

// parseCPUList parses a list such as "0-55,112-167"; the list of a node with
// memory only is empty.
func parseCPUList(text string) ([]CPURange, error) {
	if text == "" {
		return nil, nil
	}
	var ranges []CPURange
	for item := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(item, "-")
		if !isRange {
			to = from
		}
		first, errFirst := strconv.ParseUint(from, 10, 31)
		last, errLast := strconv.ParseUint(to, 10, 31)
		if errFirst != nil || errLast != nil || last < first {
			return nil, fmt.Errorf("%q is not a CPU or a range of CPUs", shorten(item))
		}
		ranges = append(ranges, CPURange{int(first), int(last)})
	}
	return ranges, nil
}
