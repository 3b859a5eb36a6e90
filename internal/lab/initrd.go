package lab

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed scripts/initrd.sh
var initrdScript []byte

// earlyModules reach the ext4 root and the 9p shares. crc32c_generic is a soft
// dependency of ext4, so it is named; newer kernels have it in a library that
// ext4 depends on.
func earlyModules(modulesRoot, release string) ([]string, error) {
	names := []string{"virtio_pci", "virtio_blk", "ext4", "9p", "9pnet_virtio"}
	list, err := os.ReadFile(filepath.Join(modulesRoot, "lib/modules", release, "modules.dep"))
	if err != nil {
		return nil, err
	}
	if bytes.Contains(list, []byte("/crc32c_generic.ko")) {
		names = append([]string{"crc32c_generic"}, names...)
	}
	return names, nil
}

// buildInitrd writes an initrd with busybox and the early modules of one
// kernel release; modulesRoot holds lib/modules/<release>.
func buildInitrd(ctx context.Context, modulesRoot, release, target string) error {
	busyboxPath, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	busybox, err := os.ReadFile(busyboxPath)
	if err != nil {
		return err
	}
	early, err := earlyModules(modulesRoot, release)
	if err != nil {
		return err
	}
	modules, err := moduleFiles(ctx, modulesRoot, release, early)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	c := &cpioWriter{w: &archive}
	for _, d := range []string{"bin", "m", "proc", "sys", "dev", "new"} {
		c.dir(d)
	}
	c.file("bin/busybox", busybox)
	c.file("init", initrdScript)
	var order strings.Builder
	for _, path := range modules {
		data, err := readModule(ctx, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".xz")
		c.file("m/"+name, data)
		fmt.Fprintln(&order, name)
	}
	c.file("m/order", []byte(order.String()))
	if err := c.close(); err != nil {
		return err
	}
	return os.WriteFile(target, archive.Bytes(), 0o644)
}

// moduleFiles returns the files of the modules and of what they depend on, in
// the order to load them. A module that is built in has no file.
func moduleFiles(ctx context.Context, modulesRoot, release string, names []string) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	for _, name := range names {
		out, err := output(ctx, "", "modprobe", "-d", modulesRoot, "-S", release, "--show-depends", name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != "insmod" || seen[f[1]] {
				continue
			}
			seen[f[1]] = true
			files = append(files, f[1])
		}
	}
	return files, nil
}

func readModule(ctx context.Context, path string) ([]byte, error) {
	if strings.HasSuffix(path, ".xz") {
		return output(ctx, "", "xz", "-dcq", path)
	}
	return os.ReadFile(path)
}
