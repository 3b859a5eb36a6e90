package lab

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestCpioIsReadByCpio(t *testing.T) {
	program, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed: scripts/setup.sh lab")
	}
	var archive bytes.Buffer
	c := &cpioWriter{w: &archive}
	c.dir("bin")
	contents := map[string][]byte{"bin/a": []byte("x"), "bin/bc": []byte("four"), "empty": nil, "init": bytes.Repeat([]byte("z"), 70001)}
	for _, name := range []string{"bin/a", "bin/bc", "empty", "init"} {
		c.file(name, contents[name])
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(program, "cpio", "-i", "-d")
	cmd.Dir, cmd.Stdin = dir, &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	for name, want := range contents {
		path := filepath.Join(dir, name)
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}
