package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

// laid is a wire with the two devices of a scenario on it. The collector gets to know them
// before they are used.
type laid struct {
	*rxeScenario
	wire  wire.Wire
	known time.Time
}

// shortWire is the discipline of a wire that nothing is wrong with. There always is one:
// soft-RoCE gives a connection up when it sends in the moment in which one is put in the
// place of none.
const shortWire = "delay 0ms"

// lay makes the devices of a scenario, on a wire that is free.
func (s *rxeStage) lay(ctx context.Context, played *rxeScenario) (*laid, error) {
	l := &laid{rxeScenario: s.named(played), wire: s.freeWire(played)}
	if err := l.wire.Impair(ctx, cmp.Or(played.path, shortWire)); err != nil {
		return nil, err
	}
	if err := l.wire.AddDevices(ctx, l.device(), l.peerDevice()); err != nil {
		return nil, err
	}
	l.known = time.Now().Add(rxeSettling)
	return l, nil
}

// freeWire is one that neither the present scenario nor the next one is on.
func (s *rxeStage) freeWire(played *rxeScenario) wire.Wire {
	switch free := wire.Veth(); {
	case played.far:
		return wire.NICs()
	case s.present != nil && s.present.wire == free, s.next != nil && s.next.wire == free:
		return wire.SecondVeth()
	default:
		return free
	}
}

// named is a scenario with a name, and so devices, of its own: the collector has not
// forgotten those of an earlier play.
func (s *rxeStage) named(played *rxeScenario) *rxeScenario {
	s.plays++
	one := *played
	one.name = fmt.Sprintf("%s %d", played.name, s.plays)
	return &one
}

// ready is what was laid for a scenario while another one was played, or is laid now.
func (s *rxeStage) ready(ctx context.Context, played *rxeScenario) (*laid, error) {
	if next := s.next; next != nil {
		s.next = nil
		return next, nil
	}
	return s.lay(ctx, played)
}

// remove removes the devices, though the run may be over.
func (l *laid) remove(ctx context.Context) error {
	return wire.RemoveDevices(context.WithoutCancel(ctx), l.device(), l.peerDevice())
}
