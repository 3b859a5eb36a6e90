// Package wire sets up, in the guest, a veth pair on which two soft-RoCE devices talk
// to one another, and spoils it.
//
// Policy routing makes traffic between the two addresses cross the wire although both
// are local, so that netem acts on it.
package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The two ends.
const (
	ClientNetdev, ServerNetdev   = "va", "vb"
	ClientAddress, ServerAddress = "10.9.0.1", "10.9.0.2"
	// GIDIndex 1 is the IPv4 address of the interface.
	GIDIndex = 1
)

const setUp = `
modprobe -a ib_uverbs rdma_ucm rdma_rxe veth sch_netem
ip link add va type veth peer name vb
ip addr add 10.9.0.1/24 dev va
ip addr add 10.9.0.2/24 dev vb
ip link set va up
ip link set vb up
ip rule add pref 1 iif va lookup local
ip rule add pref 2 iif vb lookup local
ip rule add pref 10 from 10.9.0.1 to 10.9.0.2 lookup 101
ip rule add pref 11 from 10.9.0.2 to 10.9.0.1 lookup 102
ip rule add pref 12 to 10.9.0.2 oif va lookup 101
ip rule add pref 13 to 10.9.0.1 oif vb lookup 102
ip rule add pref 100 lookup local
ip rule del pref 0
ip route add 10.9.0.2 dev va src 10.9.0.1 table 101
ip route add 10.9.0.1 dev vb src 10.9.0.2 table 102
`

// SetUp loads the modules and makes the wire.
func SetUp(ctx context.Context) error {
	if err := RunLines(ctx, setUp); err != nil {
		return err
	}
	for _, netdev := range []string{"all", ClientNetdev, ServerNetdev} {
		for name, value := range map[string]string{"rp_filter": "0", "accept_local": "1"} {
			path := "/proc/sys/net/ipv4/conf/" + netdev + "/" + name
			if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddDevices puts a soft-RoCE device on each end and waits until both are active.
func AddDevices(ctx context.Context, client, server string) error {
	lines := "rdma link add " + client + " type rxe netdev " + ClientNetdev + "\n" +
		"rdma link add " + server + " type rxe netdev " + ServerNetdev
	return errors.Join(RunLines(ctx, lines), awaitActive(ctx))
}

// RemoveDevices removes them again.
func RemoveDevices(ctx context.Context, client, server string) error {
	return RunLines(ctx, "rdma link del "+client+"\nrdma link del "+server)
}

const restore = `
ip link set va up
ip link set vb up
ip route replace 10.9.0.2 dev va src 10.9.0.1 table 101
ip route replace 10.9.0.1 dev vb src 10.9.0.2 table 102
`

// Restore brings both interfaces up, and back the routes that went with them, and waits
// until both devices are active.
func Restore(ctx context.Context) error {
	return errors.Join(RunLines(ctx, restore), awaitActive(ctx))
}

// activePatience bounds the wait for a device to be active.
const activePatience = time.Minute

func awaitActive(ctx context.Context) error {
	deadline := time.Now().Add(activePatience)
	for {
		out, err := Run(ctx, "rdma", "link")
		if err != nil || strings.Count(out, "state ACTIVE") == 2 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not both devices are active after %s: %s", activePatience, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// SetInterface takes an interface up or down at once: the start of a program takes an
// emulated machine a part of the second within which an event has to be told.
func SetInterface(name string, up bool) (err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket for the flags of %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("read the flags of %s: %w", name, err)
	}
	flags := request.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	request.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set the flags of %s to %#x: %w", name, flags, err)
	}
	return nil
}

// Impair puts a netem discipline on what the client's device sends.
func Impair(ctx context.Context, netem string) error {
	return RunLines(ctx, "tc qdisc replace dev "+ClientNetdev+" root netem "+netem+" limit 10000")
}

// Clear removes the discipline, and loses the packets that wait in it.
func Clear(ctx context.Context) error {
	out, err := Run(ctx, "tc", "qdisc", "show", "dev", ClientNetdev)
	if err != nil || !strings.Contains(out, "netem") {
		return err
	}
	return RunLines(ctx, "tc qdisc del dev "+ClientNetdev+" root")
}

// Run runs a program to its end and returns what it printed.
func Run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// RunLines runs one command line after the other; words are separated by spaces.
func RunLines(ctx context.Context, lines string) error {
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if _, err := Run(ctx, words...); err != nil {
			return err
		}
	}
	return nil
}
