package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

const (
	// nfsModule is the service of both ends of NFS over RDMA: the module's name.
	nfsModule = "rpcrdma"

	nfsExported, nfsMounted, nfsRecovery = workDir + "/nfs-export", workDir + "/nfs", workDir + "/nfs-recovery"

	nfsd, rpcCache = "/proc/fs/nfsd/", "/proc/net/rpc/"
	// nfsdRecovery exists where the kernel keeps the list of clients itself, see
	// CONFIG_NFSD_LEGACY_CLIENT_TRACKING.
	nfsdRecovery = nfsd + "nfsv4recoverydir"
	// nfsForever is when what the daemons of user space would answer ends.
	nfsForever = "2147483000"
	// nfsExportFlags: insecure ports, no subtree check, and a number in place of the
	// file system's identity. nfsd.h of the kernel's user interface has them.
	nfsExportFlags = "9218"

	nfsUp = `
modprobe -a nfsd rpcrdma nfsv4
mount -t nfsd nfsd /proc/fs/nfsd
mount -t tmpfs tmpfs ` + nfsExported + `
`
	nfsMount = "mount -i -t nfs4 -o vers=4.1,proto=rdma,port=20049,sec=sys,addr=" + serverAddress +
		",clientaddr=" + clientAddress + " " + serverAddress + ":/ " + nfsMounted
)

// nfsdSettings are files of the server and what is written to them, in order. The
// first three answer what the kernel asks the daemons of user space: who the client
// is, what is exported to it, and where the root is. After its start the server waits
// for clients that reclaim what they had. It can be told that there are none, unless
// the list of clients is the matter of a daemon: then it waits for the shortest time.
func nfsdSettings(keepsClients bool) [][2]string {
	before, after := [][2]string{{nfsd + "nfsv4gracetime", "10"}}, [][2]string(nil)
	if keepsClients {
		before, after = [][2]string{{nfsdRecovery, nfsRecovery}}, [][2]string{{nfsd + "v4_end_grace", "Y"}}
	}
	return slices.Concat([][2]string{
		{rpcCache + "auth.unix.ip/channel", "nfsd " + clientAddress + " " + nfsForever + " lab"},
		{rpcCache + "nfsd.export/channel", "lab " + nfsExported + " " + nfsForever + " " + nfsExportFlags + " 65534 65534 0"},
		{rpcCache + "nfsd.fh/channel", `lab 1 \x00000000 ` + nfsForever + " " + nfsExported},
	}, before, [][2]string{
		// Older versions want a port mapper.
		{nfsd + "versions", "-3 +4"},
		{nfsd + "portlist", "rdma 20049"},
		{nfsd + "threads", "2"},
	}, after)
}

// nfsIsSeen writes and reads a file over NFS over RDMA: its client and its server are
// seen as one consumer in the kernel, with as many completions as the RDMA core polled.
func nfsIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	skippedBefore, err := c.lossesFor(ctx, entrySkipped)
	if err != nil {
		return "", err
	}
	w, err := g.startCQWitness()
	if err != nil {
		return "", err
	}
	const blocks = 100
	err = serveNFS(ctx)
	if err == nil {
		err = workOverNFS(ctx, blocks)
	}
	err = errors.Join(err, stopNFS(ctx))
	polled, errWitness := w.stop()
	if err := errors.Join(err, errWitness); err != nil {
		return "", err
	}
	if err := c.consumersSettle(ctx, polled, nfsModule); err != nil {
		return "", err
	}
	words, err := c.readsOfServer(ctx, blocks, skippedBefore)
	if err != nil {
		return "", err
	}
	words = fmt.Sprintf("%d completions, as the RDMA core polled; %s", polled, words)
	for _, device := range []string{clientDevice, serverDevice} {
		h := c.histogram(otlp.Match{Service: nfsModule, Metric: "rdma.wqe.duration", Attributes: map[string]string{"rdma.device.name": device}})
		if h.Count == 0 {
			return "", fmt.Errorf("no request on %s was timed", device)
		}
		words += fmt.Sprintf("; %d timed on %s", h.Count, device)
	}
	return words, c.balance(ctx)
}

// readsOfServer checks that the server read each block that the client wrote. Of a
// post that the kernel ran no program for nothing is known but that it completed;
// that it was one of those is counted, from skippedBefore on.
func (c *collector) readsOfServer(ctx context.Context, blocks, skippedBefore float64) (string, error) {
	skipped, err := c.lossesFor(ctx, entrySkipped)
	if err != nil {
		return "", err
	}
	skipped -= skippedBefore
	reads := c.total(completionsOf(nfsModule, serverDevice, "rdma_read"))
	unknown := c.total(completionsOf(nfsModule, serverDevice, "unknown"))
	if reads+unknown < blocks || unknown > skipped {
		return "", fmt.Errorf("the server completed %.0f reads and %.0f that are not known for %.0f blocks that were written; the kernel skipped a program %.0f times",
			reads, unknown, blocks, skipped)
	}
	return fmt.Sprintf("%.0f reads of the server, and %.0f of which the post was not seen; "+entrySkipped+" %.0f", reads, unknown, skipped), nil
}

func serveNFS(ctx context.Context) error {
	for _, dir := range []string{nfsExported, nfsMounted, nfsRecovery} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(runLines(ctx, nfsUp), wire.Veth().TakeUnbound(ctx)); err != nil {
		return err
	}
	_, err := os.Stat(nfsdRecovery)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, s := range nfsdSettings(err == nil) {
		if err := os.WriteFile(s[0], []byte(s[1]+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// workOverNFS mounts, and writes and reads so many blocks of 4 KiB.
func workOverNFS(ctx context.Context, blocks int) error {
	if err := runLines(ctx, nfsMount); err != nil {
		return err
	}
	count := fmt.Sprintf("count=%d", blocks)
	_, errWrite := run(ctx, "dd", "if=/dev/zero", "of="+nfsMounted+"/file", "bs=4k", count, "oflag=direct")
	_, errRead := run(ctx, "dd", "if="+nfsMounted+"/file", "of=/dev/null", "bs=4k", "iflag=direct")
	return errors.Join(errWrite, errRead, runLines(ctx, "umount "+nfsMounted))
}

// stopNFS ends the server and makes it forget the export.
func stopNFS(ctx context.Context) error {
	err := os.WriteFile(nfsd+"threads", []byte("0\n"), 0o644)
	for _, cache := range []string{"auth.unix.ip", "nfsd.export", "nfsd.fh"} {
		err = errors.Join(err, os.WriteFile(rpcCache+cache+"/flush", []byte("1\n"), 0o644))
	}
	return errors.Join(err, runLines(ctx, "umount "+nfsExported+"\numount /proc/fs/nfsd"), wire.Veth().LeaveUnbound(ctx))
}
