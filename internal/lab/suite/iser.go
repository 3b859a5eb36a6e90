package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

const (
	// The services of the two ends: the modules' names.
	iserInitiator, iserTarget = "ib_iser", "ib_isert"

	iserName   = "iqn.2026-01.lab:disk"
	iserPortal = serverAddress + ":3260"

	targetRoot    = "/sys/kernel/config/target/"
	targetDisk    = targetRoot + "core/rd_mcp_0/disk"
	targetISCSI   = targetRoot + "iscsi/" + iserName
	targetGroup   = targetISCSI + "/tpgt_1"
	targetUnit    = targetGroup + "/lun/lun_0"
	targetAddress = targetGroup + "/np/" + iserPortal

	iserUp   = "modprobe -a target_core_mod iscsi_target_mod ib_isert ib_iser sd_mod"
	iserDown = "modprobe -r -a ib_iser ib_isert iscsi_target_mod"
	iserNode = "iscsiadm -m node -T " + iserName + " -p " + iserPortal + " -I iser"
)

// targetSettings are files of the target and what is written to them, in order; a
// directory has no text. The disk is in memory and keeps nothing; any initiator may
// use it.
var targetSettings = [][2]string{
	{targetRoot + "core/rd_mcp_0", ""},
	{targetDisk, ""},
	{targetDisk + "/control", "rd_pages=1024,rd_nullio=1"},
	{targetDisk + "/enable", "1"},
	{targetRoot + "iscsi", ""},
	{targetISCSI, ""},
	{targetGroup, ""},
	{targetGroup + "/attrib/authentication", "0"},
	{targetGroup + "/attrib/generate_node_acls", "1"},
	{targetGroup + "/attrib/demo_mode_write_protect", "0"},
	{targetUnit, ""},
	{targetAddress, ""},
	{targetAddress + "/iser", "1"},
	{targetGroup + "/enable", "1"},
}

// iserIsSeen does I/O on a disk over iSER: both ends are seen as consumers in the
// kernel, with as many completions as the RDMA core polled.
func iserIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	// Every request has to wait for the wire, and for nothing else as long.
	if err := impair(ctx, "delay 10ms"); err != nil {
		return "", err
	}
	w, err := g.startCQWitness()
	if err != nil {
		return "", err
	}
	const blocks = 50
	err = serveDisk(ctx)
	if err == nil {
		err = g.workOverISER(ctx, blocks)
	}
	err = errors.Join(err, removeDisk(ctx))
	polled, errWitness := w.stop()
	if err := errors.Join(err, errWitness); err != nil {
		return "", err
	}
	if err := c.consumersSettle(ctx, polled, iserInitiator, iserTarget); err != nil {
		return "", err
	}
	words, err := c.describeConsumers(ctx, polled, 2*blocks, iserInitiator, iserTarget)
	return words, errors.Join(err, c.balance(ctx))
}

// serveDisk sets up the target.
func serveDisk(ctx context.Context) error {
	if err := errors.Join(runLines(ctx, iserUp), wire.Veth().TakeUnbound(ctx), mountConfigFS(ctx, targetRoot)); err != nil {
		return err
	}
	for _, s := range targetSettings {
		if err := writeSetting(s); err != nil {
			return err
		}
	}
	return os.Symlink(targetDisk, targetUnit+"/disk")
}

// workOverISER logs in, writes and reads so many blocks of 4 KiB, and logs out.
func (g *Guest) workOverISER(ctx context.Context, blocks int) error {
	daemon, err := g.startISCSID(ctx)
	if err != nil {
		return err
	}
	defer daemon.kill()
	if err := runLines(ctx, iserNode+" -o new\n"+iserNode+" --login"); err != nil {
		return fmt.Errorf("%w; the daemon: %s", err, daemon.outputTail())
	}
	disk, err := awaitDisk(ctx)
	if err == nil {
		err = writeAndRead(ctx, disk, blocks)
	}
	return errors.Join(err, runLines(ctx, iserNode+" --logout"))
}

// startISCSID starts the daemon that logs in.
func (g *Guest) startISCSID(ctx context.Context) (*process, error) {
	if err := errors.Join(
		os.WriteFile("/etc/iscsi/initiatorname.iscsi", []byte("InitiatorName=iqn.2026-01.lab:initiator\n"), 0o644),
		os.MkdirAll("/run/lock/iscsi", 0o755),
	); err != nil {
		return nil, err
	}
	daemon, err := g.start("iscsid", "iscsid", "-f")
	if err != nil {
		return nil, err
	}
	err = waitFor(ctx, patience, "iscsid listens", func() (bool, error) {
		sockets, err := os.ReadFile("/proc/net/unix")
		return strings.Contains(string(sockets), "ISCSIADM_ABSTRACT_NAMESPACE"), err
	})
	if err != nil {
		daemon.kill()
		return nil, fmt.Errorf("%w: %s", err, daemon.outputTail())
	}
	return daemon, nil
}

// awaitDisk returns the device of the one disk of all iSCSI sessions.
func awaitDisk(ctx context.Context) (disk string, err error) {
	err = waitFor(ctx, patience, "the disk is there", func() (bool, error) {
		found, err := filepath.Glob("/sys/class/iscsi_session/session*/device/target*/*/block/*")
		if err != nil || len(found) != 1 {
			return false, err
		}
		disk = "/dev/" + filepath.Base(found[0])
		_, err = os.Stat(disk)
		return err == nil, nil
	})
	return disk, err
}

// removeDisk takes the target down, and both modules with the connections.
func removeDisk(ctx context.Context) error {
	errs := []error{
		os.WriteFile(targetGroup+"/enable", []byte("0"), 0o644),
		os.WriteFile(targetAddress+"/iser", []byte("0"), 0o644),
		os.Remove(targetUnit + "/disk"),
	}
	for _, s := range slices.Backward(targetSettings) {
		if s[1] == "" {
			errs = append(errs, os.Remove(s[0]))
		}
	}
	return errors.Join(append(errs, wire.Veth().LeaveUnbound(ctx), runLines(ctx, iserDown))...)
}
