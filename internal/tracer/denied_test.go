package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

func denied(path, capability string) error {
	return &provider.PermissionError{Op: "read", Path: path, Capability: capability, Err: unix.EACCES}
}

func logged(held ...string) (*Tracer, func() []string) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	capabilities := map[string]bool{}
	for _, name := range held {
		capabilities[name] = true
	}
	lines := func() []string {
		return strings.FieldsFunc(text.String(), func(r rune) bool { return r == '\n' })
	}
	return &Tracer{log: log, denials: newDenials(log, capabilities), warnings: newWarnings(log), resources: &resources{}, kernel: &kernelVerbs{}}, lines
}

// One line for a capability that is missing, however many processes it hides,
// with its name and what is not seen.
func TestMissingCapabilityIsSaidOnce(t *testing.T) {
	tr, lines := logged("CAP_BPF")
	if err := tr.Impaired(); err != nil {
		t.Errorf("before anything was denied: %v", err)
	}
	tr.notLookedInto(fmt.Errorf("process 7: %w", fs.ErrNotExist))
	if got := lines(); len(got) > 0 {
		t.Errorf("a process that is gone is not worth a line: %q", got)
	}
	for pid := range 100 {
		tr.notLookedInto(fmt.Errorf("process %d: %w", pid, denied(fmt.Sprintf("/proc/%d/maps", pid), "CAP_SYS_PTRACE")))
		tr.notLookedInto(errors.Join(errors.New("other"), denied("/proc/1/root/lib", "CAP_DAC_READ_SEARCH")))
	}
	got := lines()
	if len(got) != 2 {
		t.Fatalf("%d lines, want one for each capability: %q", len(got), got)
	}
	for i, want := range []string{"CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"} {
		if !strings.Contains(got[i], "level=WARN") || !strings.Contains(got[i], want) || !strings.Contains(got[i], "not traced") {
			t.Errorf("it says: %s", got[i])
		}
	}
	var missing *CapabilityError
	if err := tr.Impaired(); !errors.As(err, &missing) || len(missing.Missing) != 2 || !errors.Is(err, unix.EACCES) {
		t.Errorf("impaired by %v", err)
	}
}

// One status for all that is not seen, and one sentence for a core whose types are
// not known, which both of its parts need.
func TestUnprobedCoreImpairs(t *testing.T) {
	tr, _ := logged("CAP_BPF")
	tr.kernel.failed = errors.New("consumers are not seen")
	if err := tr.Impaired(); !errors.Is(err, tr.kernel.failed) {
		t.Errorf("impaired by %v", err)
	}
	tr.resources.failed = &KernelError{Need: "types", Release: "6.1"}
	var kernel *KernelError
	if err := tr.Impaired(); !errors.As(err, &kernel) || errors.Is(err, tr.kernel.failed) {
		t.Errorf("impaired by %v", err)
	}
	tr.notLookedInto(denied("/proc/1/maps", "CAP_SYS_PTRACE"))
	var missing *CapabilityError
	if err := tr.Impaired(); !errors.As(err, &missing) || !errors.As(err, &kernel) || strings.Contains(err.Error(), "\n") {
		t.Errorf("impaired by %v", err)
	}
}

// What no capability helps against, or concerns single files, is said and is no
// impairment.
func TestOtherDenials(t *testing.T) {
	for name, tc := range map[string]struct{ capability, says string }{
		"held all the same": {"CAP_DAC_READ_SEARCH", "in spite of CAP_DAC_READ_SEARCH"},
		"of single files":   {"CAP_CHECKPOINT_RESTORE (CAP_SYS_ADMIN before Linux 5.9)", "deleted or replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, lines := logged("CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH")
			for range 3 {
				tr.notLookedInto(denied("/proc/1/root/home/a/libmlx5.so", tc.capability))
			}
			if got := lines(); len(got) != 1 || !strings.Contains(got[0], tc.says) || !strings.Contains(got[0], "libmlx5.so") {
				t.Errorf("it says: %q", got)
			}
			if err := tr.Impaired(); err != nil {
				t.Errorf("impaired by %v", err)
			}
		})
	}
}

// Where the kernel denies a kprobe it is said what helps, and no capability is asked
// for that is held.
func TestDeniedKprobe(t *testing.T) {
	cause := fmt.Errorf("kprobe on ib_modify_qp: opening perf event: %w", unix.EACCES)
	for name, tc := range map[string]struct {
		held  map[string]bool
		needs bool
		says  string
	}{
		"without CAP_SYS_ADMIN": {map[string]bool{"CAP_BPF": true, "CAP_PERFMON": true}, true, "perf_event_paranoid"},
		"with CAP_SYS_ADMIN":    {map[string]bool{"CAP_SYS_ADMIN": true}, false, "a security module denies"},
	} {
		t.Run(name, func(t *testing.T) {
			err := deniedKprobe(tc.held, cause)
			if missing := new(CapabilityError); errors.As(err, &missing) != tc.needs {
				t.Errorf("a capability is asked for: %v, want %v", !tc.needs, tc.needs)
			}
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "run it as root") != tc.needs {
				t.Errorf("it says: %v", err)
			}
		})
	}
}

// What is no denial is told as it is.
func TestFailedKprobe(t *testing.T) {
	err := kprobeError("ib_modify_qp", unix.ENOMEM)
	if want := "kprobe on ib_modify_qp: cannot allocate memory"; err.Error() != want || !errors.Is(err, unix.ENOMEM) {
		t.Errorf("it says %q, want %q", err, want)
	}
	err = kprobeError("ib_modify_qp", unix.EACCES)
	if !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "ib_modify_qp") || !strings.Contains(err.Error(), "CAP_SYS_ADMIN") {
		t.Errorf("denied it says %q", err)
	}
}
