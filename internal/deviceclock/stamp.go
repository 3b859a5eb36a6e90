// Package deviceclock works out how the clock of a device runs against that of
// the host, from pairs of a time stamp that the device wrote and the moment at
// which a CPU had found it. Nothing is said before it is proven: see Clock.
package deviceclock

// Format is how a device counts time.
type Format uint8

// The formats of time stamps of mlx5. Which one a device writes is configured for
// each queue; it shows in the stamps.
const (
	// Unknown means that there is no stamp, or of another format.
	Unknown Format = iota
	// FreeRunning stamps count cycles of the device from no moment in particular,
	// and begin anew when their bits are used up (mlx5dv_ts_to_ns in
	// infiniband/mlx5dv.h of rdma-core takes a mask for that).
	FreeRunning
	// RealTime stamps are seconds since 1970 in the upper 32 bits and nanoseconds
	// in the lower (REAL_TIME_TO_NS in drivers/net/ethernet/mellanox/mlx5/core/
	// lib/clock.h of Linux). A daemon of PTP may set that clock.
	RealTime
)

// String returns "unknown", "free-running" or "real-time".
func (f Format) String() string {
	switch f {
	case FreeRunning:
		return "free-running"
	case RealTime:
		return "real-time"
	default:
		return "unknown"
	}
}

// year2001 is when a stamp in the format RealTime begins to look like one: a
// device of 1 GHz would have to run for a century to count cycles that far.
const year2001 = 1_000_000_000

// FormatOf tells the format by a stamp; 0 is no stamp.
func FormatOf(stamp uint64) Format {
	switch {
	case stamp == 0:
		return Unknown
	case stamp>>32 < year2001:
		return FreeRunning
	case stamp&0xffffffff < 1e9:
		return RealTime
	default:
		return Unknown
	}
}

// ticks is a stamp on a scale without gaps: cycles or nanoseconds.
func (f Format) ticks(stamp uint64) int64 {
	if f == RealTime {
		return int64(stamp>>32)*1e9 + int64(stamp&0xffffffff)
	}
	return int64(stamp)
}
