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

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
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
// sigreturn live, calls a function and exits.
var trialCode = []byte{
	0xb8, 157, 0, 0, 0, // mov eax, SYS_prctl
	0xbf, 22, 0, 0, 0, // mov edi, PR_SET_SECCOMP
	0xbe, 1, 0, 0, 0, // mov esi, SECCOMP_MODE_STRICT
	0x0f, 0x05, // syscall
	0xe8, 9, 0, 0, 0, // call function
	0x31, 0xff, // xor edi, edi
	0xb8, 60, 0, 0, 0, // mov eax, SYS_exit
	0x0f, 0x05, // syscall
	0x55, // function: push rbp
	0x5d, // pop rbp
	0xc3, // ret
}

const trialFunction = trialHeader + 31

// trialProgram is the smallest ELF file that holds the code.
func trialProgram() ([]byte, error) {
	size := uint64(trialHeader + len(trialCode))
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
	file.Write(trialCode)
	return file.Bytes(), err
}

// tryReturnProbe runs the child with a return probe on it. The error is a
// *KernelError when the kernel kills it.
func tryReturnProbe(program *ebpf.Program, kind linkKind) error {
	file, err := trialFile()
	if err != nil {
		return fmt.Errorf("trying a return probe: %w", err)
	}
	defer file.Close()
	path := "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	executable, err := link.OpenExecutable(path)
	if err != nil {
		return fmt.Errorf("trying a return probe: %w", err)
	}
	var l link.Link
	if kind == linkMulti {
		l, err = executable.UretprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{trialFunction}})
	} else {
		l, err = executable.Uretprobe("trial", program, &link.UprobeOptions{Address: trialFunction})
	}
	if err != nil {
		return fmt.Errorf("trying a return probe: %w", attachError(err, kind))
	}
	defer l.Close()

	return trialResult(trialCommand(file).Run())
}

// trialCommand executes the file, which the child finds as its descriptor 3.
func trialCommand(file *os.File) *exec.Cmd {
	return &exec.Cmd{Path: "/proc/self/fd/3", Args: []string{"rdma-return-probe-trial"}, ExtraFiles: []*os.File{file}}
}

func trialResult(err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("trying a return probe: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &KernelError{
			Need:    "the fix that lets return probes pass seccomp filters: it killed the process that they were tried on",
			Release: kernelRelease(),
			Err:     err,
		}
	}
	return fmt.Errorf("trying a return probe: %w", err)
}

// trialFile is the program in a file without a name.
func trialFile() (*os.File, error) {
	program, err := trialProgram()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("rdma-return-probe-trial", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a file in memory: %w", err)
	}
	writer := os.NewFile(uintptr(fd), "trial")
	defer writer.Close()
	if _, err := writer.Write(program); err != nil {
		return nil, fmt.Errorf("writing to a file in memory: %w", err)
	}
	// A file that is open for writing is not executed.
	return os.Open("/proc/self/fd/" + strconv.Itoa(fd))
}
