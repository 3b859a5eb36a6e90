package verbs

import (
	"net/netip"
	"time"
)

// GID is the address of a port on an InfiniBand or RoCE network. The zero value,
// which no port has, stands for one that is not known.
type GID [16]byte

// String returns the GID as sysfs and ibv_devinfo print it, in eight full groups
// of hexadecimal digits; "" when it is not known.
func (g GID) String() string {
	if g == (GID{}) {
		return ""
	}
	return netip.AddrFrom16(g).StringExpanded()
}

// GIDType is enum ib_gid_type of the kernel (include/rdma/ib_verbs.h).
type GIDType uint8

// The types of GIDs.
const (
	GIDTypeIB     GIDType = 0
	GIDTypeRoCEv1 GIDType = 1
	GIDTypeRoCEv2 GIDType = 2
)

// Path is how a connected QP reaches its peer, as far as the kernel's RDMA core
// was asked for it. Members that are not known have their zero value, unless a
// member says otherwise.
type Path struct {
	LocalGID, RemoteGID GID
	// GIDType is that of both; it means something when LocalGID is known.
	GIDType GIDType
	// RemoteLID is the peer's local identifier on InfiniBand.
	RemoteLID uint16
	// MTU is the path MTU in bytes.
	MTU int
	// AckTimeout is how long the device waits for an acknowledgement before it
	// sends again: 4.096 µs · 2^timeout. 0 also when it waits forever.
	AckTimeout time.Duration
	// MinRNRTimer is how long the peer has to wait when this side has no receive
	// posted.
	MinRNRTimer time.Duration
	// RetryCount is how often the device sends again before the QP fails,
	// RNRRetryCount how often after the peer had no receive posted (7: without
	// end).
	RetryCount, RNRRetryCount       uint8
	HasRetryCount, HasRNRRetryCount bool
	// ServiceLevel and TrafficClass mean something when HasClass.
	ServiceLevel, TrafficClass uint8
	HasClass                   bool
}

// LocalAddress and RemoteAddress are the IP addresses that RoCE v2 packets carry;
// invalid where there are none or they are not known.
func (p *Path) LocalAddress() netip.Addr { return p.address(p.LocalGID) }

// RemoteAddress is the peer's, see LocalAddress.
func (p *Path) RemoteAddress() netip.Addr { return p.address(p.RemoteGID) }

func (p *Path) address(g GID) netip.Addr {
	if p.GIDType != GIDTypeRoCEv2 || g == (GID{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom16(g).Unmap()
}

// AckTimeout converts the timeout of a QP (IBTA 11.6.2, "Local ACK Timeout"): five
// bits, 0 waits forever and gives 0.
func AckTimeout(code uint8) time.Duration {
	if code &= 31; code != 0 {
		return 4096 * time.Nanosecond << code
	}
	return 0
}

// rnrTimers are the times of the RNR NAK timer field in units of 10 µs (IBTA
// 9.7.5.2.8, table "Encoding for RNR NAK Timer Field").
var rnrTimers = [32]int{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTimer converts the min_rnr_timer of a QP.
func RNRTimer(code uint8) time.Duration {
	return time.Duration(rnrTimers[code&31]) * 10 * time.Microsecond
}

// MTU converts enum ib_mtu to bytes, 0 for a value that is none.
func MTU(code uint8) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}
