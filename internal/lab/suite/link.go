package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Two rxe devices stand on the two ends of a veth pair. Policy routing makes
// traffic between the two addresses cross the wire although both are local, so
// that netem acts on it.
const (
	clientDevice, serverDevice   = "rxa", "rxb"
	clientNetdev, serverNetdev   = "va", "vb"
	clientAddress, serverAddress = "10.9.0.1", "10.9.0.2"
	// gidIndex 1 is the IPv4 address of the interface.
	gidIndex = 1
	// rxe is the name of the provider, providerLibrary a part of the file name of
	// its user-space driver.
	rxe, providerLibrary = "rxe", "librxe"
)

const linkCommands = `
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
rdma link add rxa type rxe netdev va
rdma link add rxb type rxe netdev vb
`

func setUpLink(ctx context.Context) error {
	if err := runLines(ctx, linkCommands); err != nil {
		return err
	}
	for _, netdev := range []string{"all", clientNetdev, serverNetdev} {
		for name, value := range map[string]string{"rp_filter": "0", "accept_local": "1"} {
			path := "/proc/sys/net/ipv4/conf/" + netdev + "/" + name
			if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
				return err
			}
		}
	}
	return waitFor(ctx, patience, "both devices are active", func() (bool, error) {
		out, err := run(ctx, "rdma", "link")
		return strings.Count(out, "state ACTIVE") == 2, err
	})
}

// setInterface takes an interface up or down at once: the start of a program takes
// an emulated machine a part of the second within which an event has to be told.
func setInterface(name string, up bool) (err error) {
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

// impair puts a netem discipline on what the client's device sends.
func impair(ctx context.Context, netem string) error {
	return runLines(ctx, "tc qdisc replace dev "+clientNetdev+" root netem "+netem+" limit 10000")
}

// hasten takes the delay from a wire on which there is traffic. Removing the
// discipline would lose the packets that wait in it.
func hasten(ctx context.Context) error { return impair(ctx, "delay 0ms") }

func clearNetem(ctx context.Context) error {
	out, err := run(ctx, "tc", "qdisc", "show", "dev", clientNetdev)
	if err != nil || !strings.Contains(out, "netem") {
		return err
	}
	return runLines(ctx, "tc qdisc del dev "+clientNetdev+" root")
}

// sentPackets returns what the client's device put on the wire: proof that the
// traffic crosses it.
func sentPackets() (uint64, error) {
	data, err := os.ReadFile("/sys/class/net/" + clientNetdev + "/statistics/tx_packets")
	if err != nil {
		return 0, err
	}
	var n uint64
	_, err = fmt.Sscan(string(data), &n)
	return n, err
}
