package provider

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds on the search of an installation.
const (
	maxDirectories = 512
	maxConfigDepth = 4
	maxConfigBytes = 1 << 20
)

// Installed returns the verbs libraries in the library directories below a
// root directory ("/" for this machine), so that they can be probed before
// the first process uses them: libibverbs in the directories of the dynamic
// linker, and everything in their libibverbs subdirectories, where rdma-core
// keeps its providers. Elsewhere the content of a file decides; here the
// names do, because the directories hold thousands of other libraries. The error
// wraps ErrHangs as that of Process does.
func (f *Finder) Installed(root string) ([]File, error) {
	return patiently(f, obstacle{}, func(l *look) ([]File, error) { return f.installed(l, root) })
}

func (f *Finder) installed(l *look, root string) ([]File, error) {
	var errs errorList
	var found []candidate
	seen := map[FileID]bool{}
	for _, name := range installedNames(root) {
		if !f.takes(name) {
			continue
		}
		l.enter(obstacle{})
		c, err := f.examineInstalled(l, root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs.add(f.unreadable(err))
		case c.known.kind != Other && !seen[c.file.ID]:
			seen[c.file.ID] = true
			found = append(found, c)
		}
	}
	return f.resolve(l, found, &errs), errs.join("libraries in " + root)
}

func (f *Finder) examineInstalled(l *look, root, name string) (candidate, error) {
	file := File{Path: filepath.Join(root, name), DisplayPath: shown(name), root: root, name: name}
	h, err := openInRoot(root, name)
	if err != nil {
		return candidate{}, err
	}
	defer h.close()
	if !h.regular {
		return candidate{known: &known{kind: Other}}, nil
	}
	opened, err := h.read(file.Path)
	if err != nil {
		return candidate{}, err
	}
	defer func() { _ = opened.Close() }()
	key, err := identify(opened)
	if err != nil {
		return candidate{}, err
	}
	// Below another root, an absolute link leads elsewhere for us.
	if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", h.fd)); err == nil && filepath.IsAbs(path) {
		file.Path = path
	}
	file.identify(key, h.stamp)
	k, err := f.lookUp(l, h, key, file.Path)
	return candidate{file: file, known: k}, err
}

// installedNames lists candidates by their paths below the root.
func installedNames(root string) []string {
	var names []string
	for _, dir := range libraryDirectories(root) {
		names = append(names, listBelow(root, dir, func(name string) bool { return strings.HasPrefix(name, "libibverbs.so") })...)
		names = append(names, listBelow(root, filepath.Join(dir, "libibverbs"), func(name string) bool { return strings.Contains(name, ".so") })...)
	}
	return names
}

func listBelow(root, dir string, keep func(string) bool) []string {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if keep(e.Name()) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}

// libraryDirectories lists the directories of the dynamic linker: the usual
// ones, those of each architecture, and those of /etc/ld.so.conf.
func libraryDirectories(root string) []string {
	var dirs []string
	seen := map[string]bool{}
	add := func(dir string) {
		if filepath.IsAbs(dir) && !seen[dir] && len(dirs) < maxDirectories {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range []string{"/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib"} {
		add(dir)
	}
	for _, pattern := range []string{"/usr/lib/*-linux-gnu*", "/lib/*-linux-gnu*"} {
		matches, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, m := range matches {
			if below, err := filepath.Rel(root, m); err == nil {
				add("/" + below)
			}
		}
	}
	for _, dir := range linkerConfig(root, "/etc/ld.so.conf", 0) {
		add(dir)
	}
	return dirs
}

// linkerConfig reads a configuration of ldconfig: one directory a line, or
// "include pattern".
func linkerConfig(root, path string, depth int) []string {
	if depth > maxConfigDepth {
		return nil
	}
	file, err := os.Open(filepath.Join(root, path))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var dirs []string
	lines := bufio.NewScanner(io.LimitReader(file, maxConfigBytes))
	for lines.Scan() && len(dirs) < maxDirectories {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "include":
			for _, pattern := range fields[1:] {
				dirs = append(dirs, included(root, filepath.Dir(path), pattern, depth)...)
			}
		default:
			// "directory=type" is an old form.
			dir, _, _ := strings.Cut(fields[0], "=")
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func included(root, dir, pattern string, depth int) []string {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(dir, pattern)
	}
	matches, _ := filepath.Glob(filepath.Join(root, pattern))
	var dirs []string
	for _, m := range matches {
		if below, err := filepath.Rel(root, m); err == nil {
			dirs = append(dirs, linkerConfig(root, "/"+below, depth+1)...)
		}
	}
	return dirs
}
