package bpf

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// No program can change what it watches: none calls a helper that writes to the
// memory of a process, sends it a signal, or changes what a function returns.
func TestProgramsOnlyWatch(t *testing.T) {
	forbidden := map[asm.BuiltinFunc]bool{
		asm.FnProbeWriteUser: true, asm.FnOverrideReturn: true, asm.FnSendSignal: true, asm.FnSendSignalThread: true,
	}
	reads := 0
	for object, load := range map[string]func() (*ebpf.CollectionSpec, error){"tracker": LoadTracker, "resources": LoadResources, "kverbs": LoadKverbs} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for name, program := range spec.Programs {
			for _, i := range program.Instructions {
				if !i.IsBuiltinCall() {
					continue
				}
				switch helper := asm.BuiltinFunc(i.Constant); {
				case forbidden[helper]:
					t.Errorf("%s, program %s calls %v", object, name, helper)
				case helper == asm.FnProbeReadUser:
					reads++
				}
			}
		}
	}
	if reads == 0 {
		t.Error("no program reads the memory of a process: the test does not see their calls")
	}
}
