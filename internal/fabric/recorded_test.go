package fabric

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded lays out a recorded sysfs and returns a Reader of it. A recording
// has one line for each attribute, "path = value", and symbolic link, "path ->
// target": a PCI address has colons, which Go modules do not allow in the names
// of their files.
func recorded(t *testing.T, name string) *Reader {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".sysfs"))
	if err != nil {
		t.Fatal(err)
	}
	return laidOut(t, string(text))
}

func laidOut(t *testing.T, recording string) *Reader {
	t.Helper()
	root := t.TempDir()
	for line := range strings.Lines(recording) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := layOut(root, line); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
	}
	return NewReader(root)
}

func layOut(root, line string) error {
	path, target, isLink := strings.Cut(line, " -> ")
	path, value, _ := strings.Cut(path, " =")
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if isLink {
		return os.Symlink(target, path)
	}
	return os.WriteFile(path, []byte(strings.TrimSpace(value)+"\n"), 0o644)
}
