package suite

import (
	"context"
	"fmt"
	"os"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

// The two rxe devices of the tests, and the wire between them.
const (
	clientDevice, serverDevice   = "rxa", "rxb"
	clientNetdev, serverNetdev   = wire.ClientNetdev, wire.ServerNetdev
	clientAddress, serverAddress = wire.ClientAddress, wire.ServerAddress
	gidIndex                     = wire.GIDIndex
	// rxe is the name of the provider, providerLibrary a part of the file name of
	// its user-space driver.
	rxe, providerLibrary = "rxe", "librxe"
)

func setUpLink(ctx context.Context) error {
	if err := wire.SetUp(ctx); err != nil {
		return err
	}
	return wire.Veth().AddDevices(ctx, clientDevice, serverDevice)
}

// impair puts a netem discipline on what the client's device sends.
func impair(ctx context.Context, netem string) error { return wire.Veth().Impair(ctx, netem) }

// hasten takes the delay from a wire on which there is traffic. Removing the
// discipline would lose the packets that wait in it.
func hasten(ctx context.Context) error { return impair(ctx, "delay 0ms") }

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
