package lab

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// userSpaceSuite is the Debian release whose user space the guest runs.
const userSpaceSuite = "bookworm"

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debianMirror returns the address of the Debian archive this host already
// uses, so that the lab reaches no host that the machine does not. Without the
// release information apt tells it before any "apt-get update".
func debianMirror(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "apt-get", "indextargets",
		"--no-release-info", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	return mirrorFromTargets(string(out))
}

func mirrorFromTargets(targets string) (string, error) {
	fallback := ""
	for line := range strings.Lines(targets) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "main" {
			continue
		}
		u, err := url.Parse(f[2])
		if err != nil || filepath.Base(u.Path) != "debian" {
			continue
		}
		if f[0] == userSpaceSuite {
			return f[2], nil
		}
		if fallback == "" {
			fallback = f[2]
		}
	}
	if fallback == "" {
		return "", fmt.Errorf("apt on this host has no Debian archive configured (component main): add one to /etc/apt/sources.list.d")
	}
	return fallback, nil
}

// aptLists are package lists of one suite in a directory of their own: the
// host's own lists and sources stay as they are.
type aptLists struct {
	dir  string
	opts []string
}

func openAptLists(ctx context.Context, mirror, suite string) (*aptLists, error) {
	dir, err := os.MkdirTemp("", "rdmaradar-apt-")
	if err != nil {
		return nil, err
	}
	a := &aptLists{dir: dir}
	if err := a.fill(ctx, mirror, suite); err != nil {
		a.Close()
		return nil, fmt.Errorf("package lists of %s: %w", suite, err)
	}
	return a, nil
}

func (a *aptLists) fill(ctx context.Context, mirror, suite string) error {
	for _, d := range []string{"lists/partial", "archives/partial", "download"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			return err
		}
	}
	sources := filepath.Join(a.dir, "lab.list")
	if err := os.WriteFile(sources, []byte(sourceLine(mirror, suite)), 0o644); err != nil {
		return err
	}
	a.opts = []string{
		"-qq",
		"-o", "Dir::Etc::sourcelist=" + sources,
		"-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(a.dir, "lists"),
		"-o", "Dir::Cache::archives=" + filepath.Join(a.dir, "archives"),
		"-o", "Dir::Cache::pkgcache=",
		"-o", "Dir::Cache::srcpkgcache=",
		"-o", "APT::Sandbox::User=root",
		"-o", "Acquire::Languages=none",
	}
	_, err := output(ctx, "", "apt-get", append(a.opts, "update")...)
	return err
}

func sourceLine(mirror, suite string) string {
	return fmt.Sprintf("deb [arch=amd64 signed-by=%s] %s %s main\n", debianKeyring, mirror, suite)
}

// dependencies returns the names of the packages that a package depends on.
func (a *aptLists) dependencies(ctx context.Context, pkg string) ([]string, error) {
	out, err := output(ctx, "", "apt-cache", append(a.opts, "depends", pkg)...)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// download fetches a package and returns the path of the .deb, valid until
// Close.
func (a *aptLists) download(ctx context.Context, pkg string) (string, error) {
	dir := filepath.Join(a.dir, "download")
	if _, err := output(ctx, dir, "apt-get", append(a.opts, "download", pkg)...); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, pkg+"_*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d files: %w", pkg, len(found), err)
	}
	return found[0], nil
}

// Close removes the lists and every downloaded package.
func (a *aptLists) Close() { _ = os.RemoveAll(a.dir) }
