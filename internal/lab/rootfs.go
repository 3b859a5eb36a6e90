package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// guestPackages is the user space of the guest: real verbs clients, what sets up,
// watches and breaks a link, and what installs and runs a service.
func guestPackages() []string {
	return []string{
		"bash", "coreutils", "util-linux", "mount", "grep", "sed", "mawk", "hostname",
		"procps", "iproute2", "kmod", "libcap2-bin", "bpftool", "gdb-minimal",
		"rdma-core", "ibverbs-providers", "ibverbs-utils", "perftest", "rdmacm-utils",
		"open-iscsi", "systemd", "dpkg",
	}
}

// rootImageName changes with its contents, so that a cached image of another
// list of packages is not taken for this one.
func rootImageName() string {
	sum := sha256.Sum256([]byte("2 " + userSpaceSuite + " " + strings.Join(guestPackages(), " ")))
	return "root-" + hex.EncodeToString(sum[:6]) + ".img"
}

// buildRootImage makes one ext4 image with the packages unpacked. Maintainer
// scripts never run: nothing in the guest needs them, and the build takes
// seconds. Machines boot from throw-away snapshots of it.
func buildRootImage(ctx context.Context, mirror, target string) error {
	root, err := os.MkdirTemp("", "rdmaradar-root-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	_, err = output(ctx, "", "mmdebstrap", "-q", "--mode=root", "--variant=extract", "--architectures=amd64",
		"--include="+strings.Join(guestPackages(), ","),
		"--aptopt=APT::Install-Recommends \"false\"",
		"--aptopt=Acquire::Languages \"none\"",
		"--keyring="+debianKeyring,
		userSpaceSuite, root, sourceLine(mirror, userSpaceSuite))
	if err != nil {
		return err
	}
	if err := trimRoot(root); err != nil {
		return err
	}
	partial := target + ".partial"
	if _, err := output(ctx, "", "mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", root, partial, "700M"); err != nil {
		return err
	}
	return os.Rename(partial, target)
}

func trimRoot(root string) error {
	for _, d := range []string{"mnt", "lab", "proc", "sys", "dev", "run", "tmp", "root", "etc", "lib/modules"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	for _, d := range []string{"etc/apt", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache", "var/lib/apt"} {
		if err := os.RemoveAll(filepath.Join(root, d)); err != nil {
			return err
		}
	}
	files := map[string]string{
		"etc/passwd":        "root:x:0:0::/root:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1 localhost rdma-lab\n",
		"etc/hostname":      "rdma-lab\n",
		"etc/machine-id":    "0123456789abcdef0123456789abcdef\n",
		"etc/os-release":    "ID=debian\nVERSION_CODENAME=" + userSpaceSuite + "\nPRETTY_NAME=\"RDMA radar lab guest\"\n",
		"etc/nsswitch.conf": "hosts: files\npasswd: files\ngroup: files\n",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	// Maintainer scripts would make these links.
	for name, target := range map[string]string{"usr/bin/awk": "mawk", "bin/sh": "bash"} {
		link := filepath.Join(root, name)
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			return fmt.Errorf("link %s to %s: %w", name, target, err)
		}
	}
	return nil
}
