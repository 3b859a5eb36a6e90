package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// equalNumbersStayApart runs two processes of one program whose queue pairs have
// one number, on two devices.
func equalNumbersStayApart(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	devices := []string{clientDevice, serverDevice}
	var both []*told
	for _, device := range devices {
		p, err := g.startLinkedOn(ctx, device)
		if err != nil {
			return "", err
		}
		both = append(both, p)
	}
	if err := c.probesLinked(ctx); err != nil {
		return "", err
	}
	number, err := equalNumbers(ctx, both)
	if err != nil {
		return "", err
	}
	if err := c.mark(ctx, g.worked()); err != nil {
		return "", err
	}
	// One writes twice as much as the other, at the same time.
	for _, p := range both {
		p.signal(syscall.SIGUSR1)
	}
	for _, p := range both {
		if err := p.answered(ctx, "wrote"); err != nil {
			return "", err
		}
	}
	if err := both[1].tell(ctx, syscall.SIGUSR1, "wrote"); err != nil {
		return "", err
	}
	var expected []sum
	for i, device := range devices {
		writes := uint64(i+1) * linkedWrites
		expected = append(
			expected,
			sum{completionsOf(linkedProgram, device, "rdma_write"), writes},
			sum{bytesOf(linkedProgram, device, "transmit"), writes * linkedBytes},
		)
	}
	if err := errors.Join(c.settles(ctx, expected), c.balance(ctx), c.hasLinkedQueues(ctx, 2)); err != nil {
		return "", err
	}
	return fmt.Sprintf("QP %d on both devices, %d and %d writes", number, linkedWrites, 2*linkedWrites), nil
}

// equalNumbers replaces the queue pair with the lower number until both have one.
func equalNumbers(ctx context.Context, both []*told) (int, error) {
	const most = 200
	var numbers [2]int
	for range most {
		for i, p := range both {
			qps, err := resourcesOf(ctx, "qp", p.pid())
			if err != nil {
				return 0, err
			}
			if len(qps) != 1 || qps[0].QPNumber == nil {
				return 0, fmt.Errorf("process %d has queue pairs %+v, not one", p.pid(), qps)
			}
			numbers[i] = *qps[0].QPNumber
		}
		if numbers[0] == numbers[1] {
			return numbers[0], nil
		}
		lower := 0
		if numbers[1] < numbers[0] {
			lower = 1
		}
		if err := both[lower].tell(ctx, syscall.SIGUSR2, "replaced"); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("after %d tries the queue pairs are %d", most, numbers)
}

// overlaysAreCountedOnce runs a pair in two containers: each has an overlay of the
// guest's own root directory, so that one file of the provider has three paths.
func overlaysAreCountedOnce(ctx context.Context, g *Guest) (text string, err error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	var roots []string
	for _, name := range []string{"one", "two"} {
		root := "/run/overlay-" + name
		unmount, err := mountOverlay(ctx, filepath.Join(g.dir, name), root)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, unmount()) }()
		roots = append(roots, root)
	}
	const messages = 500
	args := func(root, device string, peer ...string) []string {
		return append([]string{"chroot", root, pingpong, "-d", device, "-g", fmt.Sprint(gidIndex), "-n", fmt.Sprint(messages), "-e", "-s", "512"}, peer...)
	}
	server, err := g.start("server", args(roots[0], serverDevice)...)
	if err != nil {
		return "", err
	}
	defer server.kill()
	if err := waitListening(ctx, server, pingpongPort); err != nil {
		return "", err
	}
	client, err := g.start("client", args(roots[1], clientDevice, serverAddress)...)
	if err != nil {
		return "", err
	}
	defer client.kill()
	if err := errors.Join(client.wait(ctx, 2*patience), server.wait(ctx, 2*patience)); err != nil {
		return "", err
	}
	if err := errors.Join(c.settles(ctx, pingpongSums(messages)), c.balance(ctx)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d sends and receives of each side, through two overlays of one file system", messages), nil
}

// mountOverlay mounts an overlay of the root directory, with what a container has
// of the host, and keeps what is written there below dir. It is mounted elsewhere:
// dir is removed with all that is in it.
func mountOverlay(ctx context.Context, dir, root string) (unmount func() error, err error) {
	options := fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
	// The collector may have files of it open.
	unmount = func() error { return runLines(context.WithoutCancel(ctx), "umount --recursive --lazy "+root) }
	err = runLines(ctx, fmt.Sprintf(`mkdir -p %[1]s/upper %[1]s/work %[3]s
mount -t overlay overlay -o %[2]s %[3]s`, dir, options, root))
	if err != nil {
		return nil, err
	}
	for _, shared := range []string{"dev", "sys", "proc"} {
		if err := runLines(ctx, fmt.Sprintf("mount --rbind /%[1]s %[2]s/%[1]s", shared, root)); err != nil {
			return nil, errors.Join(err, unmount())
		}
	}
	return unmount, nil
}
