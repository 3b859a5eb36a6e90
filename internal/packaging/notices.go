package packaging

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Notices returns the licences, and the notices, of what is linked into a Go program
// besides this repository: most ask that whoever gets the program gets them too. It
// reads them from the module cache, which has them once the program was built.
func Notices(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("licences of %s: %w", program, err)
	}
	cache, err := goVariable("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	root, err := goVariable("GOROOT")
	if err != nil {
		return nil, err
	}
	all := collection{}
	if err := all.add("Go "+info.GoVersion, root); err != nil {
		return nil, err
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if strings.HasPrefix(module.Path, ".") || strings.HasPrefix(module.Path, "/") {
			continue // It is of this repository.
		}
		if err := all.add(module.Path+" "+module.Version, filepath.Join(cache, escaped(module.Path)+"@"+escaped(module.Version))); err != nil {
			return nil, err
		}
	}
	return all.text(), nil
}

// goVariable is one of `go env`.
func goVariable(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("ask go for %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// escaped is how the module cache writes a path or version: upper case letters as "!"
// and the lower case one (https://go.dev/ref/mod#module-cache).
func escaped(name string) string {
	var out strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			out.WriteByte('!')
			r = unicode.ToLower(r)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// collection has the modules of each text. Many have the same one.
type collection map[string][]string

// add reads what a module lays down in its root directory.
func (c collection) add(module, directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", module, err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !isLicence(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return fmt.Errorf("licence of %s: %w", module, err)
		}
		found = true
		c[string(bytes.TrimSpace(text))] = append(c[string(bytes.TrimSpace(text))], module)
	}
	if !found {
		return errors.New("licence of " + module + ": there is none in " + directory)
	}
	return nil
}

func isLicence(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasSuffix(name, ".GO") {
		return false
	}
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(start string) bool { return strings.HasPrefix(name, start) })
}

// text has every licence once, below the modules that it is of, in their order.
func (c collection) text() []byte {
	var parts []string
	for licence, modules := range c {
		slices.Sort(modules)
		parts = append(parts, strings.Join(slices.Compact(modules), "\n")+"\n\n"+licence+"\n")
	}
	slices.Sort(parts)
	return []byte(strings.Join(parts, "\n"+strings.Repeat("-", 80)+"\n\n"))
}
