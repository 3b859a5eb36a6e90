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
// bring what that needs, as those of 6.12 and newer do and those of 6.1 do not.
func addSoftIWARP(ctx context.Context, apt *aptLists, mirror string, line KernelLine, release, modules string) error {
	source, err := sourcePackage(release)
	if err != nil {
		return err
	}
	deb, err := apt.download(ctx, source)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp("", "rdmaradar-siw-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	if err := buildCompilerRoot(ctx, mirror, line, release, root); err != nil {
		return err
	}
	if _, err := output(ctx, "", "unshare", append(siwNamespaces(), "bash", "-c", siwScript, "siw.sh", release, deb, root)...); err != nil {
		return fmt.Errorf("compile siw for %s: %w", release, err)
	}
	updates := filepath.Join(modules, release, "updates")
	if err := os.MkdirAll(updates, 0o755); err != nil {
		return err
	}
	module, err := os.ReadFile(filepath.Join(root, "build", "siw.ko"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(updates, "siw.ko"), module, 0o644)
}

// siwNamespaces are for the script: it mounts, and its compilers end with it.
func siwNamespaces() []string { return []string{"--mount", "--pid", "--fork", "--kill-child"} }

// compilerPackages compile a module, beside the headers of its kernel and what those
// depend on.
func compilerPackages() []string {
	return []string{"bash", "dash", "coreutils", "findutils", "sed", "grep", "mawk", "perl-base", "make", "gcc", "libelf1"}
}

// buildCompilerRoot unpacks the compiler of the Debian release that a kernel is of:
// the programs of its headers do not run on an older one. Maintainer scripts never run.
func buildCompilerRoot(ctx context.Context, mirror string, line KernelLine, release, root string) error {
	if _, err := output(ctx, "", "mmdebstrap", compilerArguments(mirror, line, release, root)...); err != nil {
		return err
	}
	// A maintainer script would make this link.
	return os.Symlink("mawk", filepath.Join(root, "usr/bin/awk"))
}

// compilerArguments are those of mmdebstrap. The mirror, the release and the root are
// of one run, everything else decides what the compiler is.
func compilerArguments(mirror string, line KernelLine, release, root string) []string {
	packages := append(compilerPackages(), "linux-headers-"+release)
	stable := strings.TrimSuffix(line.Suite, "-backports")
	args := []string{
		"-q", "--mode=root", "--variant=extract", "--architectures=amd64",
		"--include=" + strings.Join(packages, ","),
		"--aptopt=APT::Install-Recommends \"false\"",
		"--aptopt=Acquire::Languages \"none\"",
		"--keyring=" + debianKeyring,
		stable, root, sourceLine(mirror, stable),
	}
	if line.Suite != stable {
		args = append(args, sourceLine(mirror, line.Suite))
	}
	return args
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
