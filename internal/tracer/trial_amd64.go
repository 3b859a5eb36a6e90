package tracer

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// On x86-64 a return probe has ended in a system call of its own since Linux
// 6.11, and until a fix of early 2025 ("seccomp: passthrough uretprobe systemcall
// without filtering") a seccomp filter that does not know it kills the traced
// process: containers and sandboxed services died of being looked at. So it is
// tried first, on a child that exists for this alone.

const (
	trialBase   = 0x400000
	trialHeader = 64 + 56
)

// trialCode enters seccomp's strict mode, in which only read, write, exit and
// sigreturn live, calls a function so many times and exits. The function is a
// poll_cq of a CQ at 0 that asks for one completion and finds none.
func trialCode(calls uint32) []byte {
	code := []byte{
		0xb8, 157, 0, 0, 0, // mov eax, SYS_prctl
		0xbf, 22, 0, 0, 0, // mov edi, PR_SET_SECCOMP
		0xbe, 1, 0, 0, 0, // mov esi, SECCOMP_MODE_STRICT
		0x0f, 0x05, // syscall
		0xbb, 0, 0, 0, 0, // mov ebx, calls
		0x31, 0xff, // xor edi, edi
		0x31, 0xd2, // xor edx, edx
		0x31, 0xc0, // again: xor eax, eax
		0xe8, 13, 0, 0, 0, // call function
		0xff, 0xcb, // dec ebx
		0x75, 0xf5, // jne again
		0x31, 0xff, // xor edi, edi
		0xb8, 60, 0, 0, 0, // mov eax, SYS_exit
		0x0f, 0x05, // syscall
		0x55, // function: push rbp
		0x5d, // pop rbp
		0xc3, // ret
	}
	binary.LittleEndian.PutUint32(code[18:], calls)
	return code
}

const trialFunction = trialHeader + 46

// trialProgram is the smallest ELF file that holds the code.
func trialProgram(calls uint32) ([]byte, error) {
	code := trialCode(calls)
	size := uint64(trialHeader + len(code))
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Entry: trialBase + trialHeader, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	segment := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
		Vaddr: trialBase, Paddr: trialBase, Filesz: size, Memsz: size, Align: 0x1000,
	}
	var file bytes.Buffer
	err := errors.Join(
		binary.Write(&file, binary.LittleEndian, &header),
		binary.Write(&file, binary.LittleEndian, &segment),
	)
	file.Write(code)
	return file.Bytes(), err
}

// tryReturnProbe runs the child with a return probe on it. The error is a
// *KernelError when the kernel kills it.
func tryReturnProbe(side *kernelSide, kind linkKind) error {
	_, err := runTrial(side, 1, kind, probedTrial{bpf.TrackerProgLeavePollCq, true})
	return err
}

// probedTrial is a program on the child's function.
type probedTrial struct {
	program  string
	isReturn bool
}

// runTrial runs the child, which calls its function so many times, with probes
// on that, and returns the CPU time it took.
func runTrial(side *kernelSide, calls uint32, kind linkKind, probes ...probedTrial) (time.Duration, error) {
	file, err := trialFile(calls)
	if err != nil {
		return 0, fmt.Errorf("trying probes: %w", err)
	}
	defer file.Close()
	executable, err := link.OpenExecutable("/proc/self/fd/" + strconv.Itoa(int(file.Fd())))
	if err != nil {
		return 0, fmt.Errorf("trying probes: %w", err)
	}
	for _, p := range probes {
		at := point{provider.PollCQ, p.program, p.isReturn}
		links, err := side.attachPoint(executable, at, []uint64{trialFunction}, trialCookie(side), kind)
		defer closeLinks(links)
		if err != nil {
			return 0, fmt.Errorf("trying probes: %w", attachError(err, kind))
		}
	}
	command := trialCommand(file)
	if err := trialResult(command.Run()); err != nil {
		return 0, err
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}

// trialCommand executes the file, which the child finds as its descriptor 3.
func trialCommand(file *os.File) *exec.Cmd {
	return &exec.Cmd{Path: "/proc/self/fd/3", Args: []string{"rdma-probe-trial"}, ExtraFiles: []*os.File{file}}
}

func trialResult(err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("trying probes: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &KernelError{
			Need:    "the fix that lets return probes pass seccomp filters: it killed the process that they were tried on",
			Release: kernelRelease(),
			Err:     err,
		}
	}
	return fmt.Errorf("trying probes: %w", err)
}
