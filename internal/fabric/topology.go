package fabric

// Relation is how far two PCI functions are from one another, in the words of
// `nvidia-smi topo`; "" is not known.
type Relation string

// The relations, from near to far.
const (
	// RelationSelf is a function and itself.
	RelationSelf Relation = "X"
	// RelationPIX: at most one PCIe switch between them.
	RelationPIX Relation = "PIX"
	// RelationPXB: several switches, without passing the host bridge.
	RelationPXB Relation = "PXB"
	// RelationPHB: through the host bridge, which is in the CPU.
	RelationPHB Relation = "PHB"
	// RelationNODE: through several host bridges of one NUMA node.
	RelationNODE Relation = "NODE"
	// RelationSYS: through the link between NUMA nodes.
	RelationSYS Relation = "SYS"
)

// RelationOf returns how far two functions are from one another.
func RelationOf(a, b PCIDevice) Relation {
	if a.Address == "" || b.Address == "" || a.HostBridge == "" || b.HostBridge == "" {
		return ""
	}
	if a.Address == b.Address {
		return RelationSelf
	}
	if belowA, belowB, ok := meet(a.Bridges, b.Bridges); ok {
		return relationBelow(belowA, belowB)
	}
	if a.HostBridge == b.HostBridge {
		return RelationPHB
	}
	return relationOfNodes(a.NUMANode, b.NUMANode)
}

// meet finds the lowest bridge above both functions, and returns how many
// bridges each of them has below it.
func meet(a, b []PCIFunction) (belowA, belowB int, ok bool) {
	for belowA, bridge := range a {
		for belowB, other := range b {
			if bridge.Address == other.Address {
				return belowA, belowB, true
			}
		}
	}
	return 0, 0, false
}

// relationBelow counts switches. The bridge where two functions meet is the
// upstream port of a switch, of which each function has one downstream port
// below it, or the slot that both are in; any bridge more belongs to another
// switch.
func relationBelow(a, b int) Relation {
	if a <= 1 && b <= 1 {
		return RelationPIX
	}
	return RelationPXB
}

func relationOfNodes(a, b *int) Relation {
	switch {
	case a == nil || b == nil:
		return ""
	case *a == *b:
		return RelationNODE
	default:
		return RelationSYS
	}
}
