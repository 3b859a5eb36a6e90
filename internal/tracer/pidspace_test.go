package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOwnProcess(t *testing.T) {
	if got := ownProcess("/"); got != uint32(os.Getpid()) {
		t.Errorf("got %d, this is process %d", got, os.Getpid())
	}
	elsewhere := t.TempDir()
	if got := ownProcess(elsewhere); got != 0 {
		t.Errorf("got %d of a directory without /proc", got)
	}
	if err := os.Mkdir(filepath.Join(elsewhere, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("4711", filepath.Join(elsewhere, "proc", "self")); err != nil {
		t.Fatal(err)
	}
	if got := ownProcess(elsewhere); got != 4711 {
		t.Errorf("got %d of a host where it is 4711", got)
	}
}

func TestCheckPIDNamespace(t *testing.T) {
	if os.Getenv("PID_NAMESPACE_CHILD") != "" {
		if err := CheckPIDNamespace("/"); err != nil {
			os.Stdout.WriteString(err.Error())
		}
		os.Exit(0)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: a PID namespace cannot be made without it")
	}
	if err := CheckPIDNamespace(t.TempDir()); err != nil {
		t.Errorf("nothing is known of that /proc, but: %v", err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestCheckPIDNamespace$")
	child.Env = append(os.Environ(), "PID_NAMESPACE_CHILD=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	said, err := child.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "root_path") {
		t.Errorf("in a PID namespace of its own: %q", said)
	}
}

func TestIsGone(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	hidden := t.TempDir()
	if err := os.Mkdir(filepath.Join(hidden, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, root string
		pid        int
		gone       bool
	}{
		{"this one", "/", os.Getpid(), false},
		{"one that ended", "/", ended.Process.Pid, true},
		{"one that another /proc does not have", hidden, os.Getpid(), true},
	} {
		if got := isGone(c.root, uint32(c.pid)); got != c.gone {
			t.Errorf("%s: gone %v", c.name, got)
		}
	}
}
