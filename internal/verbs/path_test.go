package verbs

import (
	"net/netip"
	"testing"
	"time"
)

func TestGIDString(t *testing.T) {
	mapped := GID(netip.MustParseAddr("::ffff:10.9.0.1").As16())
	for gid, want := range map[GID]string{
		{}:     "",
		mapped: "0000:0000:0000:0000:0000:ffff:0a09:0001",
		GID(netip.MustParseAddr("fe80::5054:ff:fe12:3456").As16()): "fe80:0000:0000:0000:5054:00ff:fe12:3456",
	} {
		if got := gid.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Only RoCE v2 packets carry the GID as an IP address.
func TestAddresses(t *testing.T) {
	local, remote := GID(netip.MustParseAddr("::ffff:10.9.0.1").As16()), GID(netip.MustParseAddr("2001:db8::2").As16())
	for kind, want := range map[GIDType][2]string{
		GIDTypeIB:     {"invalid IP", "invalid IP"},
		GIDTypeRoCEv1: {"invalid IP", "invalid IP"},
		GIDTypeRoCEv2: {"10.9.0.1", "2001:db8::2"},
	} {
		p := Path{LocalGID: local, RemoteGID: remote, GIDType: kind}
		if got := [2]string{p.LocalAddress().String(), p.RemoteAddress().String()}; got != want {
			t.Errorf("type %d: %v, want %v", kind, got, want)
		}
	}
	if p := (Path{GIDType: GIDTypeRoCEv2}); p.LocalAddress().IsValid() {
		t.Error("an address without a GID")
	}
}

// The examples of ibv_modify_qp(3) and the IBTA's table.
func TestTimers(t *testing.T) {
	for code, want := range map[uint8]time.Duration{
		0: 0, 1: 8192 * time.Nanosecond, 14: 67108864 * time.Nanosecond, 31: 8796093022208 * time.Nanosecond,
	} {
		if got := AckTimeout(code); got != want {
			t.Errorf("timeout %d: %s, want %s", code, got, want)
		}
	}
	for code, want := range map[uint8]time.Duration{
		0: 655360 * time.Microsecond, 1: 10 * time.Microsecond, 12: 640 * time.Microsecond,
		26: 81920 * time.Microsecond, 31: 491520 * time.Microsecond,
	} {
		if got := RNRTimer(code); got != want {
			t.Errorf("min_rnr_timer %d: %s, want %s", code, got, want)
		}
	}
	for code, want := range map[uint8]int{0: 0, 1: 256, 3: 1024, 5: 4096, 6: 0} {
		if got := MTU(code); got != want {
			t.Errorf("mtu %d: %d, want %d", code, got, want)
		}
	}
}

func TestAsyncEventNames(t *testing.T) {
	for kind, want := range map[AsyncEventType]string{AsyncPortError: "port_error", AsyncQPFatal: "qp_fatal", 77: "type_77"} {
		if got := kind.String(); got != want {
			t.Errorf("%d: %q, want %q", kind, got, want)
		}
	}
}

func TestQPStateNames(t *testing.T) {
	for state, want := range map[QPState]string{0: "reset", 3: "rts", 6: "err", 9: "state_9"} {
		if got := state.String(); got != want {
			t.Errorf("%d: %q, want %q", state, got, want)
		}
	}
}
