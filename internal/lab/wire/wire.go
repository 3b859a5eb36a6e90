// Package wire sets up, in the guest, a connection between two network interfaces on which
// two soft-RoCE devices talk to one another, and spoils it.
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
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The two ends of the veth pair.
const (
	ClientNetdev, ServerNetdev   = "va", "vb"
	ClientAddress, ServerAddress = "10.9.0.1", "10.9.0.2"
)

// GIDIndex is that of the IPv4 address of an interface.
const GIDIndex = 1

// Wire connects two network interfaces.
type Wire struct {
	ClientNetdev, ServerNetdev   string
	ClientAddress, ServerAddress string
	// number tells routing tables and rules of wires apart.
	number int
}

// Veth is a wire between the two ends of a veth pair.
func Veth() Wire {
	return Wire{ClientNetdev: ClientNetdev, ServerNetdev: ServerNetdev, ClientAddress: ClientAddress, ServerAddress: ServerAddress}
}

// SecondVeth is another one: see SetUpSecondVeth.
func SecondVeth() Wire {
	return Wire{ClientNetdev: "vc", ServerNetdev: "vd", ClientAddress: "10.9.2.1", ServerAddress: "10.9.2.2", number: 2}
}

// NICs is a wire between the two emulated network interfaces of a machine with two NUMA
// nodes: that of the client is on the far one.
func NICs() Wire {
	return Wire{ClientNetdev: "na", ServerNetdev: "nb", ClientAddress: "10.9.1.1", ServerAddress: "10.9.1.2", number: 1}
}

// Local addresses are found after all other rules, so that those of wires come first.
const load = `
modprobe -a ib_uverbs rdma_ucm rdma_rxe veth sch_netem
ip rule add pref 100 lookup local
ip rule del pref 0
`

// SetUp loads the modules and makes the wire.
func SetUp(ctx context.Context) error {
	return errors.Join(RunLines(ctx, load), Veth().add(ctx))
}

// SetUpSecondVeth makes another wire beside that of SetUp.
func SetUpSecondVeth(ctx context.Context) error { return SecondVeth().add(ctx) }

// add makes the wire of a veth pair.
func (w Wire) add(ctx context.Context) error {
	return errors.Join(RunLines(ctx, w.lines("ip link add NA type veth peer name NB")), w.route(ctx))
}

// SetUpNICs makes a wire of the network interfaces with these hardware addresses, beside
// that of SetUp.
func SetUpNICs(ctx context.Context, client, server string) error {
	nics := NICs()
	if err := RunLines(ctx, "modprobe virtio_net"); err != nil {
		return err
	}
	for hardware, name := range map[string]string{client: nics.ClientNetdev, server: nics.ServerNetdev} {
		before, err := netdevOf(hardware)
		if err != nil {
			return err
		}
		if err := RunLines(ctx, "ip link set "+before+" name "+name); err != nil {
			return err
		}
	}
	return nics.route(ctx)
}

// netdevOf is the name of the network interface with that hardware address.
func netdevOf(hardware string) (string, error) {
	const class = "/sys/class/net"
	entries, err := os.ReadDir(class)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		address, err := os.ReadFile(class + "/" + entry.Name() + "/address")
		if err == nil && strings.TrimSpace(string(address)) == hardware {
			return entry.Name(), nil
		}
	}
	return "", fmt.Errorf("no network interface has the hardware address %s", hardware)
}

const route = `
ip addr add CLIENT/24 dev NA
ip addr add SERVER/24 dev NB
ip link set NA up
ip link set NB up
ip rule add pref 1N iif NA lookup local
ip rule add pref 2N iif NB lookup local
ip rule add pref 3N from CLIENT to SERVER lookup 10N
ip rule add pref 4N from SERVER to CLIENT lookup 20N
ip rule add pref 5N to SERVER oif NA lookup 10N
ip rule add pref 6N to CLIENT oif NB lookup 20N
` + routes

const routes = `
ip route replace SERVER dev NA src CLIENT table 10N
ip route replace CLIENT dev NB src SERVER table 20N
`

// What goes to the server and is bound to no address crosses the wire too, as the
// consumers in the kernel do, from TakeUnbound to LeaveUnbound.
const (
	takeUnbound  = "ip rule add pref 7N to SERVER iif lo lookup 10N"
	leaveUnbound = "ip rule del pref 7N"
)

// TakeUnbound has traffic to the server that is bound to no address cross the wire.
func (w Wire) TakeUnbound(ctx context.Context) error { return RunLines(ctx, w.lines(takeUnbound)) }

// LeaveUnbound ends what TakeUnbound began.
func (w Wire) LeaveUnbound(ctx context.Context) error { return RunLines(ctx, w.lines(leaveUnbound)) }

// lines are command lines with the names of the wire in them.
func (w Wire) lines(of string) string {
	return strings.NewReplacer(
		"CLIENT", w.ClientAddress, "SERVER", w.ServerAddress, "NA", w.ClientNetdev, "NB", w.ServerNetdev, "N", strconv.Itoa(w.number),
	).Replace(of)
}

// route has the traffic between the addresses cross the wire.
func (w Wire) route(ctx context.Context) error {
	if err := RunLines(ctx, w.lines(route)); err != nil {
		return err
	}
	for _, netdev := range []string{"all", w.ClientNetdev, w.ServerNetdev} {
		for name, value := range map[string]string{"rp_filter": "0", "accept_local": "1"} {
			path := "/proc/sys/net/ipv4/conf/" + netdev + "/" + name
			if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddDevices puts a soft-RoCE device on each end and waits until all devices are active.
func (w Wire) AddDevices(ctx context.Context, client, server string) error {
	lines := "rdma link add " + client + " type rxe netdev " + w.ClientNetdev + "\n" +
		"rdma link add " + server + " type rxe netdev " + w.ServerNetdev
	return errors.Join(RunLines(ctx, lines), awaitActive(ctx))
}

// RemoveDevices removes them again.
func RemoveDevices(ctx context.Context, client, server string) error {
	return RunLines(ctx, "rdma link del "+client+"\nrdma link del "+server)
}

// Restore brings both interfaces up, and back the routes that went with them, and waits
// until all devices are active.
func (w Wire) Restore(ctx context.Context) error {
	return errors.Join(RunLines(ctx, w.lines("ip link set NA up\nip link set NB up\n"+routes)), awaitActive(ctx))
}

// activePatience bounds the wait for a device to be active.
const activePatience = time.Minute

func awaitActive(ctx context.Context) error {
	deadline := time.Now().Add(activePatience)
	for {
		out, err := Run(ctx, "rdma", "link")
		if err != nil || strings.Count(out, "state ACTIVE") == strings.Count(out, "link ") {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not all devices are active after %s: %s", activePatience, out)
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

// Impair puts a netem discipline on what the client's device sends, in place of the one
// that is there.
func (w Wire) Impair(ctx context.Context, netem string) error {
	// The kernel keeps the rate of that one where the new one has none.
	if !strings.Contains(netem, "rate ") {
		netem += " rate 0bit"
	}
	return RunLines(ctx, "tc qdisc replace dev "+w.ClientNetdev+" root netem "+netem+" limit 10000")
}

// Clear removes the discipline, and loses the packets that wait in it.
func (w Wire) Clear(ctx context.Context) error {
	out, err := Run(ctx, "tc", "qdisc", "show", "dev", w.ClientNetdev)
	if err != nil || !strings.Contains(out, "netem") {
		return err
	}
	return RunLines(ctx, "tc qdisc del dev "+w.ClientNetdev+" root")
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
