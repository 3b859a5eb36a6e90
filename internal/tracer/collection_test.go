package tracer

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

func programOf(instructions int) *ebpf.ProgramSpec {
	program := &ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL"}
	for range instructions - 1 {
		program.Instructions = append(program.Instructions, asm.Mov.Imm(asm.R0, 0))
	}
	program.Instructions = append(program.Instructions, asm.Return())
	return program
}

func TestLongestProgramsAreFirst(t *testing.T) {
	order := longestFirst(map[string]*ebpf.ProgramSpec{"b": programOf(2), "a": programOf(2), "short": programOf(1), "long": programOf(9)})
	if want := []string{"long", "a", "b", "short"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, not %q", order, want)
	}
}
