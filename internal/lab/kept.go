package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

// passed is a run whose tests all passed, as the cache keeps it.
type passed struct {
	Fingerprint string        `json:"fingerprint"`
	Results     report.Kernel `json:"results"`
}

// fingerprint tells runs apart whose results may differ: it is of all that the guest is
// given, of the kernel and the root image that it boots, of the emulator, and of this
// program, which says how it boots and what is made of what it reports.
func (b Boot) fingerprint(ctx context.Context, cache *Cache, contents map[string]string) (string, error) {
	emulator, err := output(ctx, "", "qemu-system-x86_64", "--version")
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q %v", emulator, b.name(), b.Pattern, b.Timeout)
	paths := []string{self, cache.rootImage(), cache.kernelDir(b.Kernel)}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		_, _ = fmt.Fprintf(h, "%q", name)
		paths = append(paths, contents[name])
	}
	for _, path := range paths {
		if err := hashTree(h, path); err != nil {
			return "", fmt.Errorf("fingerprint of the boot %s: %w", b.name(), err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashTree adds a file, or the names and contents of all files below a directory.
func hashTree(h hash.Hash, path string) error {
	return filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return hashFile(h, path, file)
	})
}

func hashFile(h hash.Hash, root, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(h, "%q %d", name, info.Size())
	_, err = io.Copy(h, f)
	return err
}

// results are those of the last run of a boot, when it had this fingerprint.
func (c *Cache) results(boot, fingerprint string) (report.Kernel, bool) {
	data, err := os.ReadFile(c.passedPath(boot))
	if err != nil {
		return report.Kernel{}, false
	}
	var last passed
	if err := json.Unmarshal(data, &last); err != nil || last.Fingerprint != fingerprint {
		return report.Kernel{}, false
	}
	return last.Results, last.Results.Passed()
}

// keep remembers the results of a run in place of those of the last one.
func (c *Cache) keep(boot, fingerprint string, results report.Kernel) error {
	now := time.Now().UTC().Truncate(time.Second)
	results.KeptFrom = &now
	data, err := json.Marshal(passed{Fingerprint: fingerprint, Results: results})
	if err != nil {
		return err
	}
	partial := c.passedPath(boot) + ".partial"
	if err := os.WriteFile(partial, data, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, c.passedPath(boot))
}

func (c *Cache) forget(boot string) error { return os.RemoveAll(c.passedPath(boot)) }

func (c *Cache) passedPath(boot string) string { return filepath.Join(c.dir, "passed-"+boot+".json") }
