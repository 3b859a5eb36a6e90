package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Cache holds the kernels and the root image, built once and booted often.
type Cache struct{ dir string }

// OpenCache opens the lab's cache below $RDMARADAR_CACHE, or below out/cache in
// the repository.
func OpenCache(repository string) (*Cache, error) {
	base := os.Getenv("RDMARADAR_CACHE")
	if base == "" {
		base = filepath.Join(repository, "out", "cache")
	}
	dir, err := filepath.Abs(filepath.Join(base, "lab"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lab cache: %w", err)
	}
	return &Cache{dir: dir}, nil
}

// Prepare builds what is missing for the given kernels. It holds a lock, so
// that two runs at once build everything once.
func (c *Cache) Prepare(ctx context.Context, lines ...KernelLine) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	jobs := c.missing(lines)
	if len(jobs) == 0 {
		return nil
	}
	if err := CheckHost(); err != nil {
		return err
	}
	mirror, err := debianMirror(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, job := range jobs {
		group.Go(func() error { return job(ctx, mirror) })
	}
	return group.Wait()
}

func (c *Cache) missing(lines []KernelLine) []func(context.Context, string) error {
	var jobs []func(context.Context, string) error
	if root := c.rootImage(); !exists(root) {
		jobs = append(jobs, func(ctx context.Context, mirror string) error {
			return wrap("root image", buildRootImage(ctx, mirror, root))
		})
	}
	for _, line := range lines {
		dir := c.kernelDir(line)
		if exists(dir) {
			continue
		}
		jobs = append(jobs, func(ctx context.Context, mirror string) error {
			return wrap("kernel "+line.Name, buildKernel(ctx, mirror, line, dir))
		})
	}
	return jobs
}

func (c *Cache) rootImage() string { return filepath.Join(c.dir, rootImageName()) }

// kernelDir carries the scripts and the compiler that it is made with in its name:
// changed ones need a new initrd, or a new module.
func (c *Cache) kernelDir(line KernelLine) string {
	sum := sha256.Sum256([]byte(string(initrdScript) + siwScript + strings.Join(compilerArguments("", line, "", ""), " ")))
	return filepath.Join(c.dir, line.Suite+"-"+hex.EncodeToString(sum[:4]))
}

func (c *Cache) lock() (func(), error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("build the lab's %s: %w", what, err)
}
