package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// hostTool is a program the lab runs on the host and the Debian package that
// carries it.
type hostTool struct {
	program string
	pkg     string
}

func hostTools() []hostTool {
	return []hostTool{
		{"qemu-system-x86_64", "qemu-system-x86"},
		{"nice", "coreutils"},
		{"mmdebstrap", "mmdebstrap"},
		{"busybox", "busybox-static"},
		{"depmod", "kmod"},
		{"modprobe", "kmod"},
		{"xz", "xz-utils"},
		{"zstd", "zstd"},
		{"mke2fs", "e2fsprogs"},
		{"dpkg-deb", "dpkg"},
		{"unshare", "util-linux"},
		{"apt-get", "apt"},
	}
}

// CheckHost says whether this host can build the images and boot the machine.
// The error names every missing Debian package and the command that installs
// them.
func CheckHost() error {
	missing := missingPackages(hostTools(), exec.LookPath)
	if len(missing) > 0 {
		return fmt.Errorf("the lab needs the Debian packages %s: run scripts/setup.sh lab",
			strings.Join(missing, ", "))
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("the lab builds its image as root (device nodes and file owners): run it as root")
	}
	return nil
}

func missingPackages(tools []hostTool, look func(string) (string, error)) []string {
	var missing []string
	seen := map[string]bool{}
	for _, t := range tools {
		if _, err := look(t.program); err == nil || seen[t.pkg] {
			continue
		}
		seen[t.pkg] = true
		missing = append(missing, t.pkg)
	}
	return missing
}
