// Package fabrictest lays out recorded and composed sysfs trees of several
// shapes of machines for tests.
//
// A recording has one line for each attribute or link, because a PCI address
// has colons, which Go modules do not allow in the names of their files:
//
//	path = value
//	path -> target of a symbolic link
//	path =x size offset:bytes offset:bytes …
//
// The last form is a binary attribute, in hexadecimal except for its size, and
// zero where nothing is said. A \n in a value is a line break. A path that ends
// with a slash is an empty directory, a line that begins with # a comment.
package fabrictest

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// LayOut lays out a recording and returns the root of the sysfs.
func LayOut(t testing.TB, recording string) string {
	t.Helper()
	root := t.TempDir()
	Add(t, root, recording)
	return root
}

// Add lays out a recording over what is at root. Attributes that are there
// already get the new value.
func Add(t testing.TB, root, recording string) {
	t.Helper()
	made := map[string]bool{}
	for line := range strings.Lines(recording) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := add(root, line, made); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
	}
}

// add lays out one line; made are the directories that are known to be there.
func add(root, line string, made map[string]bool) error {
	path, target, isLink := strings.Cut(line, " -> ")
	path, value, _ := strings.Cut(path, " =")
	path = filepath.Join(root, path)
	if directory := filepath.Dir(path); !made[directory] {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
		made[directory] = true
	}
	if strings.HasSuffix(line, "/") {
		return os.MkdirAll(filepath.Join(root, line), 0o755)
	}
	if isLink {
		return os.Symlink(target, path)
	}
	if binary, ok := strings.CutPrefix(value, "x "); ok {
		bytes, err := parseBinary(binary)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes, 0o644)
	}
	value = strings.ReplaceAll(strings.TrimSpace(value), `\n`, "\n")
	return os.WriteFile(path, []byte(value+"\n"), 0o644)
}

func parseBinary(text string) ([]byte, error) {
	size, rest, _ := strings.Cut(text, " ")
	length, err := strconv.Atoi(size)
	if err != nil {
		return nil, err
	}
	all := make([]byte, length)
	for item := range strings.FieldsSeq(rest) {
		at, digits, _ := strings.Cut(item, ":")
		offset, err := strconv.ParseUint(at, 16, 16)
		if err != nil {
			return nil, err
		}
		bytes, err := hex.DecodeString(digits)
		if err != nil {
			return nil, err
		}
		if int(offset)+len(bytes) > length {
			return nil, fmt.Errorf("%s lies outside of %d bytes", item, length)
		}
		copy(all[offset:], bytes)
	}
	return all, nil
}
