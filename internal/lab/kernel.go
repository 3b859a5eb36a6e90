package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// KernelLine is a line of kernels the lab boots: a short name a person says and
// the Debian suite that carries it.
type KernelLine struct {
	Name  string
	Suite string
}

// KernelLines returns the kernels every test runs on, oldest first.
func KernelLines() []KernelLine {
	return []KernelLine{
		{Name: "6.1", Suite: "bookworm"},
		{Name: "6.12", Suite: "bookworm-backports"},
	}
}

// FindKernelLine returns the line with that name.
func FindKernelLine(name string) (KernelLine, error) {
	var names []string
	for _, l := range KernelLines() {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return KernelLine{}, fmt.Errorf("no kernel %q in the lab: use one of %s", name, strings.Join(names, ", "))
}

// kernelFiles are what QEMU boots.
type kernelFiles struct {
	vmlinux string
	initrd  string
	modules string
}

func kernelFilesIn(dir string) kernelFiles {
	return kernelFiles{
		vmlinux: filepath.Join(dir, "vmlinux"),
		initrd:  filepath.Join(dir, "initrd"),
		modules: filepath.Join(dir, "lib", "modules"),
	}
}

// buildKernel downloads the kernel of a line and prepares it in target.
func buildKernel(ctx context.Context, mirror string, line KernelLine, target string) error {
	apt, err := openAptLists(ctx, mirror, line.Suite)
	if err != nil {
		return err
	}
	defer apt.Close()
	pkg, err := apt.dependency(ctx, "linux-image-amd64", "linux-image-")
	if err != nil {
		return err
	}
	deb, err := apt.download(ctx, pkg)
	if err != nil {
		return err
	}
	partial := target + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := unpackKernel(ctx, deb, strings.TrimPrefix(pkg, "linux-image-"), partial); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	return os.Rename(partial, target)
}

func unpackKernel(ctx context.Context, deb, release, dir string) error {
	unpacked := filepath.Join(dir, "package")
	if err := os.MkdirAll(filepath.Join(dir, "lib"), 0o755); err != nil {
		return err
	}
	if _, err := output(ctx, "", "dpkg-deb", "-x", deb, unpacked); err != nil {
		return err
	}
	files := kernelFilesIn(dir)
	if err := moveFirst(files.modules, filepath.Join(unpacked, "lib/modules"), filepath.Join(unpacked, "usr/lib/modules")); err != nil {
		return err
	}
	if err := extractVmlinux(ctx, filepath.Join(unpacked, "boot", "vmlinuz-"+release), files.vmlinux); err != nil {
		return err
	}
	if err := os.RemoveAll(unpacked); err != nil {
		return err
	}
	if _, err := output(ctx, "", "depmod", "-b", dir, release); err != nil {
		return err
	}
	return buildInitrd(ctx, dir, release, files.initrd)
}

func moveFirst(target string, sources ...string) error {
	for _, s := range sources {
		if _, err := os.Stat(s); err == nil {
			return os.Rename(s, target)
		}
	}
	return fmt.Errorf("none of %s exists", strings.Join(sources, ", "))
}
