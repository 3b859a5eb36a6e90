package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The second stages of the guest, one of them in place of an init, and the unit of
// the command for the other.
var (
	//go:embed scripts/guest.sh
	guestScript []byte
	//go:embed scripts/systemd.sh
	systemdScript []byte
	//go:embed scripts/lab.service
	labService []byte
)

// Machine is one boot of one kernel that runs one command.
type Machine struct {
	Kernel KernelLine
	// Share is a host directory, /mnt in the guest and the command's working
	// directory.
	Share string
	// Command is run by bash in the guest; see Quote for words.
	Command string
	// Console receives the serial console: the kernel's messages and the
	// command's output.
	Console io.Writer
	// Timeout bounds the whole boot.
	Timeout time.Duration
	// MemoryMiB is the guest's memory, 1024 when 0.
	MemoryMiB int
	// TwoNodes gives it a second NUMA node, without a CPU, and two network interfaces that
	// are wired to one another: see FarMAC.
	TwoNodes bool
	// Systemd boots with systemd, of which the command is a service. Without it the
	// command is all that runs.
	Systemd bool
}

// The hardware addresses of the network interfaces of a machine with two NUMA nodes: the
// far one is on the second node, the near one has none.
const (
	FarMAC  = "52:54:00:00:00:01"
	NearMAC = "52:54:00:00:00:02"
)

// DeadGuestError says that the guest ended, or was ended, before its command
// did.
type DeadGuestError struct {
	Kernel string
	// Reason says how: a time-out, a panic that QEMU left, QEMU's own failure.
	Reason string
	// ConsoleTail is the end of the serial console.
	ConsoleTail string
}

func (e *DeadGuestError) Error() string {
	return fmt.Sprintf("the guest with kernel %s died: %s; the end of its console:\n%s", e.Kernel, e.Reason, e.ConsoleTail)
}

// Run boots the machine and returns the exit status of its command. A guest
// that dies first is a *DeadGuestError.
func (m Machine) Run(ctx context.Context, cache *Cache) (int, error) {
	control, err := m.controlDir()
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(control) }()
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()

	console := &tailWriter{w: m.Console, limit: 6000}
	runErr := m.boot(ctx, cache, control, console)
	status, err := os.ReadFile(filepath.Join(control, "status"))
	if err == nil {
		return strconv.Atoi(strings.TrimSpace(string(status)))
	}
	return 0, &DeadGuestError{Kernel: m.Kernel.Name, Reason: m.deathReason(ctx, runErr), ConsoleTail: console.tail()}
}

func (m Machine) deathReason(ctx context.Context, runErr error) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("no end within %s", m.Timeout)
	case ctx.Err() != nil:
		return "interrupted"
	case runErr != nil:
		return "QEMU failed: " + runErr.Error()
	default:
		return "it powered off or panicked before the command ended"
	}
}

// controlDir makes the directory through which the guest gets its command and
// leaves the exit status.
func (m Machine) controlDir() (string, error) {
	dir, err := os.MkdirTemp("", "rdmaradar-lab-")
	if err != nil {
		return "", err
	}
	files := map[string][]byte{"init": guestScript, "command": []byte(m.Command + "\n")}
	if m.Systemd {
		files["init"], files["lab.service"] = systemdScript, labService
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	return dir, nil
}

func (m Machine) boot(ctx context.Context, cache *Cache, control string, console io.Writer) error {
	// The parent-death signal is tied to the thread that starts QEMU, so this
	// thread has to live as long as QEMU.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	args := append([]string{"-n", guestNice, "qemu-system-x86_64"}, m.arguments(cache, control)...)
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	cmd.Stdout, cmd.Stderr = console, console
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	raiseSession(cmd.Process.Pid)
	return cmd.Wait()
}

// cpuModel lacks what costs an emulated CPU most: a fifth level of page tables,
// protection keys, state of AVX to save. With all that QEMU emulates the start of a
// collector takes a third longer.
const cpuModel = "Nehalem"

// guestNice favours the guest: while a busy host keeps QEMU waiting, the guest's
// only CPU stands still and every request under way is slow.
const guestNice = "-10"

// raiseSession gives the scheduling group of a session the same priority. Where
// the kernel groups by session, a nice value weighs only within one. Where it
// does not, there is nothing to do, so an error means nothing.
func raiseSession(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(guestNice), 0)
}

func (m Machine) arguments(cache *Cache, control string) []string {
	files := kernelFilesIn(cache.kernelDir(m.Kernel))
	memory := m.MemoryMiB
	if memory == 0 {
		memory = 1024
	}
	args := []string{
		"-M", "q35", "-accel", "tcg", "-cpu", cpuModel, "-smp", "1", "-m", strconv.Itoa(memory),
		"-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
		"-kernel", files.vmlinux, "-initrd", files.initrd,
		"-drive", "id=root,file=" + cache.rootImage() + ",format=raw,if=none,snapshot=on",
		"-device", "virtio-blk-pci,drive=root,bus=" + mainBus,
		// Balancing would take pages away from processes to see who uses them.
		"-append", "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nokaslr numa_balancing=disable",
	}
	if m.TwoNodes {
		args = append(args, twoNodes(memory)...)
	}
	args = append(args, share("modules", files.modules, ",readonly=on")...)
	args = append(args, share("share", m.Share, "")...)
	return append(args, share("control", control, "")...)
}

// mainBus is where devices are, by name: QEMU would put them on the bus of the far node.
const mainBus = "pcie.0"

// twoNodes divides the memory between two nodes.
func twoNodes(memoryMiB int) []string {
	near := memoryMiB / 2
	return []string{
		"-object", fmt.Sprintf("memory-backend-ram,id=near-memory,size=%dM", near),
		"-object", fmt.Sprintf("memory-backend-ram,id=far-memory,size=%dM", memoryMiB-near),
		"-numa", "node,nodeid=0,cpus=0,memdev=near-memory",
		"-numa", "node,nodeid=1,memdev=far-memory",
		"-device", "pxb-pcie,id=far,bus_nr=128,numa_node=1,bus=" + mainBus,
		"-netdev", "hubport,id=far-wire,hubid=0",
		"-netdev", "hubport,id=near-wire,hubid=0",
		"-device", "pcie-root-port,id=far-slot,bus=far,chassis=1",
		"-device", "virtio-net-pci,netdev=far-wire,bus=far-slot,romfile=,mac=" + FarMAC,
		"-device", "virtio-net-pci,netdev=near-wire,romfile=,mac=" + NearMAC + ",bus=" + mainBus,
	}
}

func share(tag, path, extra string) []string {
	// QEMU doubles a comma inside a value.
	path = strings.ReplaceAll(path, ",", ",,")
	return []string{
		"-fsdev", "local,id=" + tag + ",path=" + path + ",security_model=none" + extra,
		"-device", "virtio-9p-pci,fsdev=" + tag + ",mount_tag=" + tag + ",bus=" + mainBus,
	}
}

// Quote makes one bash command of words.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// tailWriter passes on what it is given and remembers the end of it.
type tailWriter struct {
	w     io.Writer
	limit int
	kept  []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.limit {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-t.limit:]...)
	}
	if t.w == nil {
		return len(p), nil
	}
	return t.w.Write(p)
}

func (t *tailWriter) tail() string { return tail(t.kept, t.limit) }
