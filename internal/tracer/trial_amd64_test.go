package tracer

import (
	"bytes"
	"debug/elf"
	"os/exec"
	"testing"
)

// The child of the trial must run through when nothing probes it, or the trial
// would blame every kernel.
func TestTrialProgramRunsUnprobed(t *testing.T) {
	file, err := trialFile(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := trialResult(trialCommand(file).Run()); err != nil {
		t.Fatal(err)
	}
}

func TestTrialFunctionIsWhereTheProbeStands(t *testing.T) {
	program, err := trialProgram(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elf.NewFile(bytes.NewReader(program)); err != nil {
		t.Fatal(err)
	}
	if got := program[trialFunction:]; !bytes.Equal(got, []byte{0x55, 0x5d, 0xc3}) {
		t.Errorf("the function is % x", got)
	}
}

func TestKilledTrialBlamesTheKernel(t *testing.T) {
	err := trialResult(exec.Command("/bin/sh", "-c", "kill -KILL $$").Run())
	if _, ok := err.(*KernelError); !ok {
		t.Errorf("got %v, want a KernelError", err)
	}
}
