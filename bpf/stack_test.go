package bpf

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

const (
	// stackBytes and stackFrames are the most that kernels without private stacks
	// allow a program together with the functions it calls, MAX_BPF_STACK and
	// MAX_CALL_FRAMES of the kernel's verifier.
	stackBytes, stackFrames = 512, 8
	// frameUnit is what a frame is rounded up to.
	frameUnit = 32
)

// frame is what a function takes of the stack, and the functions it calls, those
// that it hands to helpers included.
type frame struct {
	bytes int64
	calls map[string]bool
}

// framesOf reads the functions of a program.
func framesOf(program *ebpf.ProgramSpec) map[string]*frame {
	frames := map[string]*frame{}
	var f *frame
	var before asm.Instruction
	for _, i := range program.Instructions {
		if name := i.Symbol(); name != "" {
			f = &frame{calls: map[string]bool{}}
			frames[name] = f
		}
		class := i.OpCode.Class()
		switch {
		case i.IsFunctionReference():
			f.calls[i.Reference()] = true
		case class.IsLoad() && i.Src == asm.RFP, class.IsStore() && i.Dst == asm.RFP:
			f.bytes = max(f.bytes, -int64(i.Offset))
		case class.IsALU() && i.OpCode.ALUOp() == asm.Add && i.Constant < 0 &&
			before.OpCode.ALUOp() == asm.Mov && before.Src == asm.RFP && before.Dst == i.Dst:
			f.bytes = max(f.bytes, -i.Constant)
		}
		before = i
	}
	return frames
}

// deepest is what a function and those below it take at the most.
func deepest(frames map[string]*frame, name string) (bytes int64, depth int) {
	f := frames[name]
	if f == nil {
		return 0, 0
	}
	for callee := range f.calls {
		below, frames := deepest(frames, callee)
		bytes, depth = max(bytes, below), max(depth, frames)
	}
	return bytes + max(frameUnit, (f.bytes+frameUnit-1)/frameUnit*frameUnit), depth + 1
}

// Kernels from 6.13 on give tracing programs private stacks and so take deeper ones:
// what is too much for those before shows here, without booting one.
func TestStacksFitOlderKernels(t *testing.T) {
	most := int64(0)
	for object, load := range map[string]func() (*ebpf.CollectionSpec, error){
		"tracker": LoadTracker, "resources": LoadResources, "kverbs": LoadKverbs,
	} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for name, program := range spec.Programs {
			bytes, depth := deepest(framesOf(program), name)
			if bytes > stackBytes || depth > stackFrames {
				t.Errorf("%s of %s takes %d bytes of stack in %d frames", name, object, bytes, depth)
			}
			most = max(most, bytes)
		}
	}
	if most < stackBytes/2 {
		t.Errorf("the deepest stack has %d bytes: the test does not see them", most)
	}
	t.Logf("the deepest stack has %d bytes", most)
}
