package lab

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed scripts/siw.sh
var siwScript string

// addSoftIWARP compiles the driver siw for a release and puts it among its modules.
// It raises events that soft-RoCE does not, and is an iWARP device. Debian's kernels
// leave it out, but their source has it. Type information it has where the headers
// bring what that needs, as those of 6.12 do and those of 6.1 do not.
func addSoftIWARP(ctx context.Context, apt *aptLists, release, modules string) error {
	packages, err := siwPackages(ctx, apt, release)
	if err != nil {
		return err
	}
	args := []string{"-c", siwScript, "siw.sh", release}
	for _, p := range packages {
		deb, err := apt.download(ctx, p)
		if err != nil {
			return err
		}
		args = append(args, deb)
	}
	scratch, err := os.MkdirTemp("", "rdmaradar-siw-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if _, err := output(ctx, scratch, "bash", args...); err != nil {
		return fmt.Errorf("compile siw for %s: %w", release, err)
	}
	updates := filepath.Join(modules, release, "updates")
	if err := os.MkdirAll(updates, 0o755); err != nil {
		return err
	}
	module, err := os.ReadFile(filepath.Join(scratch, "siw.ko"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(updates, "siw.ko"), module, 0o644)
}

// siwPackages returns the package of the kernel's source and, after it, those of its
// headers and build programs.
func siwPackages(ctx context.Context, apt *aptLists, release string) ([]string, error) {
	source, err := sourcePackage(release)
	if err != nil {
		return nil, err
	}
	headers := "linux-headers-" + release
	depends, err := apt.dependencies(ctx, headers)
	if err != nil {
		return nil, err
	}
	packages := []string{source, headers}
	for _, p := range depends {
		if strings.HasPrefix(p, "linux-headers-") || strings.HasPrefix(p, "linux-kbuild-") {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// sourcePackage returns the package with the source of a release, which is named
// after the first two numbers of it.
func sourcePackage(release string) (string, error) {
	numbers := strings.SplitN(release, ".", 3)
	if len(numbers) < 3 {
		return "", fmt.Errorf("the kernel release %q does not begin with three numbers", release)
	}
	return "linux-source-" + numbers[0] + "." + numbers[1], nil
}
