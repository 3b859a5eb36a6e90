package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// nvmf is an NVMe over Fabrics target on the server's device, with a null block
// device behind it, and a host that is connected to it from the client's.
type nvmf struct{ controller string }

const (
	nvmetRoot      = "/sys/kernel/config/nvmet/"
	nvmetSubsystem = nvmetRoot + "subsystems/lab"
	nvmetPort      = nvmetRoot + "ports/1"
	nvmeConnect    = "transport=rdma,traddr=" + serverAddress + ",host_traddr=" + clientAddress +
		",trsvcid=4420,nqn=lab,nr_io_queues=1,queue_size=32"
	// The services of the two ends: the modules' names.
	nvmeHost, nvmeTarget = "nvme_rdma", "nvmet_rdma"
)

// nvmetSettings are files of the target and what is written to them, in order; a
// directory has no text.
var nvmetSettings = [][2]string{
	{nvmetSubsystem, ""},
	{nvmetSubsystem + "/attr_allow_any_host", "1"},
	{nvmetSubsystem + "/namespaces/1", ""},
	{nvmetSubsystem + "/namespaces/1/device_path", "/dev/nullb0"},
	{nvmetSubsystem + "/namespaces/1/enable", "1"},
	{nvmetPort, ""},
	{nvmetPort + "/addr_trtype", "rdma"},
	{nvmetPort + "/addr_adrfam", "ipv4"},
	{nvmetPort + "/addr_traddr", serverAddress},
	{nvmetPort + "/addr_trsvcid", "4420"},
}

// connectNVMe sets up the target and connects the host. disconnect is to be called
// whatever it returns.
func connectNVMe(ctx context.Context) (*nvmf, error) {
	n := &nvmf{}
	if err := runLines(ctx, "modprobe -a null_blk nvmet nvmet_rdma nvme_rdma"); err != nil {
		return n, err
	}
	if err := mountConfigFS(ctx, nvmetRoot); err != nil {
		return n, err
	}
	for _, s := range nvmetSettings {
		if err := writeSetting(s); err != nil {
			return n, err
		}
	}
	if err := os.Symlink(nvmetSubsystem, nvmetPort+"/subsystems/lab"); err != nil {
		return n, err
	}
	fabrics, err := os.OpenFile("/dev/nvme-fabrics", os.O_RDWR, 0)
	if err != nil {
		return n, err
	}
	_, err = fabrics.WriteString(nvmeConnect)
	if err := errors.Join(err, fabrics.Close()); err != nil {
		return n, fmt.Errorf("connect NVMe over Fabrics: %w", err)
	}
	return n, waitFor(ctx, patience, "the NVMe device is there", func() (bool, error) {
		found, err := filepath.Glob("/sys/class/nvme/nvme*")
		if err != nil || len(found) == 0 {
			return false, err
		}
		n.controller = filepath.Base(found[0])
		_, err = os.Stat(n.device())
		return err == nil, nil
	})
}

// mountConfigFS mounts the file system through which targets in the kernel are set up,
// unless a directory in it is there.
func mountConfigFS(ctx context.Context, directory string) error {
	if _, err := os.Stat(directory); err == nil {
		return nil
	}
	return runLines(ctx, "mount -t configfs none /sys/kernel/config")
}

// writeSetting writes to a file of that file system, or makes a directory there.
func writeSetting(s [2]string) error {
	if s[1] == "" {
		return os.Mkdir(s[0], 0o755)
	}
	return os.WriteFile(s[0], []byte(s[1]), 0o644)
}

func (n *nvmf) device() string { return "/dev/" + n.controller + "n1" }

// work writes and reads so many blocks of 4 KiB, one after the other.
func (n *nvmf) work(ctx context.Context, blocks int) error {
	return writeAndRead(ctx, n.device(), blocks)
}

// writeAndRead does so with a device, past the page cache.
func writeAndRead(ctx context.Context, device string, blocks int) error {
	count := fmt.Sprintf("count=%d", blocks)
	_, errWrite := run(ctx, "dd", "if=/dev/zero", "of="+device, "bs=4k", count, "oflag=direct")
	_, errRead := run(ctx, "dd", "if="+device, "of=/dev/null", "bs=4k", count, "iflag=direct")
	return errors.Join(errWrite, errRead)
}

// disconnect takes down the host and the target, and waits until the connections
// are gone.
func (n *nvmf) disconnect(ctx context.Context) error {
	var errs []error
	if n.controller != "" {
		errs = append(errs, os.WriteFile("/sys/class/nvme/"+n.controller+"/delete_controller", []byte("1"), 0o644))
	}
	for _, path := range []string{nvmetPort + "/subsystems/lab", nvmetPort, nvmetSubsystem + "/namespaces/1", nvmetSubsystem} {
		if _, err := os.Lstat(path); err == nil {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(append(errs, waitFor(ctx, patience, "the connections of NVMe are gone", func() (bool, error) {
		out, err := run(ctx, "rdma", "resource", "show", "qp")
		return !strings.Contains(out, "comm [nvme") && !strings.Contains(out, "comm [rdma_cm]"), err
	}))...)
}
