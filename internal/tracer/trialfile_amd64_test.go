package tracer

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const (
	noexecSysctl   = "/proc/sys/vm/memfd_noexec"
	noexecVariable = "RDMARADAR_TEST_MEMFD_NOEXEC"
)

// TestTrialWhereMemoryIsNotExecuted runs itself in PID namespaces of their own,
// each of which has a vm.memfd_noexec of its own.
func TestTrialWhereMemoryIsNotExecuted(t *testing.T) {
	if level := os.Getenv(noexecVariable); level != "" {
		tryUnderNoexec(t, level)
		return
	}
	if _, err := os.Stat(noexecSysctl); err != nil {
		t.Skipf("this kernel executes every file in memory: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("making PID namespaces needs root")
	}
	for _, level := range []string{"1", "2"} {
		t.Run(level, func(t *testing.T) {
			command := exec.Command("/proc/self/exe", "-test.run=^TestTrialWhereMemoryIsNotExecuted$", "-test.v")
			command.Env = append(os.Environ(), noexecVariable+"="+level)
			command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if strings.Contains(string(out), "--- SKIP") {
				t.Skipf("in the namespace:\n%s", out)
			}
		})
	}
}

func tryUnderNoexec(t *testing.T, level string) {
	if err := os.WriteFile(noexecSysctl, []byte(level), 0); err != nil {
		t.Skip(err)
	}
	file, err := trialFile(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := trialResult(trialCommand(file).Run()); err != nil {
		t.Fatal(err)
	}
	if level == "2" {
		refuseNoexecDirectory(t)
	}
}

// refuseNoexecDirectory: where nothing can be executed, the error says what would
// help.
func refuseNoexecDirectory(t *testing.T) {
	directory := t.TempDir()
	for _, err := range []error{
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("none", directory, "tmpfs", syscall.MS_NOEXEC, ""),
	} {
		if err != nil {
			t.Skip(err)
		}
	}
	defer syscall.Unmount(directory, 0)
	t.Setenv("TMPDIR", directory)
	_, err := trialFile(1)
	if err == nil || !strings.Contains(err.Error(), "in memory") || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("got %v, want what was tried and that TMPDIR helps", err)
	}
}

func TestTemporaryTrialFile(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	program, err := trialProgram(1000)
	if err != nil {
		t.Fatal(err)
	}
	file, err := temporaryFile(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if left, err := os.ReadDir(directory); err != nil || len(left) != 0 {
		t.Errorf("%v and %v are left", left, err)
	}
	if err := trialResult(trialCommand(file).Run()); err != nil {
		t.Fatal(err)
	}
}
