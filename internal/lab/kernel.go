package lab

import (
	"context"
	"errors"
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
	// Optional lines are booted when they are asked for by name only.
	Optional bool
}

// KernelLines returns the kernels the lab can boot, oldest first. The newest is
// whatever Debian builds for its latest release at the time: what it is called
// is in the report.
func KernelLines() []KernelLine {
	return []KernelLine{
		{Name: "6.1", Suite: "bookworm"},
		{Name: "6.12", Suite: "bookworm-backports"},
		{Name: "newest", Suite: "trixie-backports", Optional: true},
	}
}

// SelectKernelLines returns the lines with the given names, separated by
// commas. Without any name it returns those that are not optional.
func SelectKernelLines(names string) ([]KernelLine, error) {
	var lines []KernelLine
	if names == "" {
		for _, l := range KernelLines() {
			if !l.Optional {
				lines = append(lines, l)
			}
		}
		return lines, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		line, err := FindKernelLine(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
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
	image, err := newestImage(ctx, apt)
	if err != nil {
		return err
	}
	release := strings.TrimPrefix(image, imagePrefix)
	packages, err := kernelPackages(ctx, apt, image, release)
	if err != nil {
		return err
	}
	var debs []string
	for _, p := range packages {
		deb, err := apt.download(ctx, p)
		if err != nil {
			return err
		}
		debs = append(debs, deb)
	}
	partial := target + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := unpackKernel(ctx, debs, release, partial); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(packages, " "), err)
	}
	if err := addSoftIWARP(ctx, apt, mirror, line, release, kernelFilesIn(partial).modules); err != nil {
		return err
	}
	if err := indexModules(ctx, partial, release); err != nil {
		return err
	}
	return os.Rename(partial, target)
}

const imagePrefix = "linux-image-"

// newestImage returns the package of the suite's present kernel.
func newestImage(ctx context.Context, apt *aptLists) (string, error) {
	const meta = "linux-image-amd64"
	depends, err := apt.dependencies(ctx, meta)
	if err != nil {
		return "", err
	}
	for _, p := range depends {
		if strings.HasPrefix(p, imagePrefix) {
			return p, nil
		}
	}
	return "", fmt.Errorf("package %s depends on no %s*", meta, imagePrefix)
}

// kernelPackages returns the packages that carry a kernel and its modules. Up to
// Debian 13 the image holds both; from 7.x on it depends on others of the same
// release that do.
func kernelPackages(ctx context.Context, apt *aptLists, image, release string) ([]string, error) {
	depends, err := apt.dependencies(ctx, image)
	if err != nil {
		return nil, err
	}
	packages := []string{image}
	for _, p := range depends {
		if strings.HasSuffix(p, "-"+release) {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

func unpackKernel(ctx context.Context, debs []string, release, dir string) error {
	unpacked := filepath.Join(dir, "package")
	if err := os.MkdirAll(filepath.Join(dir, "lib"), 0o755); err != nil {
		return err
	}
	for _, deb := range debs {
		if _, err := output(ctx, "", "dpkg-deb", "-x", deb, unpacked); err != nil {
			return err
		}
	}
	files := kernelFilesIn(dir)
	if err := moveFirst(files.modules, filepath.Join(unpacked, "lib/modules"), filepath.Join(unpacked, "usr/lib/modules")); err != nil {
		return err
	}
	compressed := filepath.Join(dir, "vmlinuz")
	if err := moveFirst(compressed, filepath.Join(unpacked, "boot", "vmlinuz-"+release), filepath.Join(files.modules, release, "vmlinuz")); err != nil {
		return err
	}
	if err := extractVmlinux(ctx, compressed, files.vmlinux); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(unpacked), os.Remove(compressed))
}

// indexModules makes modprobe find the modules, and the initrd with those that the
// guest boots from.
func indexModules(ctx context.Context, dir, release string) error {
	if _, err := output(ctx, "", "depmod", "-b", dir, release); err != nil {
		return err
	}
	return buildInitrd(ctx, dir, release, kernelFilesIn(dir).initrd)
}

func moveFirst(target string, sources ...string) error {
	for _, s := range sources {
		if _, err := os.Stat(s); err == nil {
			return os.Rename(s, target)
		}
	}
	return fmt.Errorf("none of %s exists", strings.Join(sources, ", "))
}
