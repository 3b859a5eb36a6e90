package bpf

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// Every uprobe program has a tail call, or kernels from 6.13 on run it on a
// stack that another thread may overwrite: see own_stack.h.
func TestUprobesKeepTheirOwnStack(t *testing.T) {
	spec, err := LoadTracker()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, program := range spec.Programs {
		if !strings.HasPrefix(program.SectionName, "uprobe/") && !strings.HasPrefix(program.SectionName, "uretprobe/") {
			continue
		}
		checked++
		hasTailCall := false
		for _, instruction := range program.Instructions {
			hasTailCall = hasTailCall || instruction.IsBuiltinCall() && instruction.Constant == int64(asm.FnTailCall)
		}
		if !hasTailCall {
			t.Errorf("%s does not call keep_own_stack()", name)
		}
	}
	if checked == 0 {
		t.Error("no uprobe program in the object")
	}
}
