package provider

import "slices"

// Direction tells sends from receives by what the device wrote: the number that
// the Reader gives is the index of a bit in Sends or Receives.
type Direction struct {
	Reader
	Sends, Receives uint32
}

// format is where a device says, in a completion, which queue it is of. The
// format is the device's, and the same in every release of its provider; where
// the number of the queue pair is in it proves that it is this one.
type format struct {
	qpNumber, direction int32
	size                int
	shift               int
	mask                uint64
	sends, receives     uint32
}

// formats are by the name of the provider.
//
//   - mlx5: struct mlx5_cqe64, sop_drop_qpn and op_own (providers/mlx5/mlx5dv.h):
//     opcodes MLX5_CQE_REQ and REQ_ERR, RESP_WR_IMM to RESP_SEND_INV and RESP_ERR.
//   - efa: struct efa_io_cdesc_common, qp_num and the queue type in flags
//     (providers/efa/efa_io_defs.h): EFA_IO_SEND_QUEUE and EFA_IO_RECV_QUEUE.
var formats = map[string]format{
	"mlx5": {qpNumber: 56, direction: 63, size: 1, shift: 4, mask: 0xf, sends: 1<<0 | 1<<13, receives: 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<14},
	"efa":  {qpNumber: 4, direction: 3, size: 1, shift: 1, mask: 0x3, sends: 1 << 1, receives: 1 << 2},
}

// DirectionOf says how to tell sends from receives in the completions of a
// provider, given how the number of the queue pair is read from them; false
// when that is not known.
func DirectionOf(name string, qpNumber Reader) (Direction, bool) {
	f, ok := formats[name]
	last := len(qpNumber.Offsets) - 1
	if !ok || last < 1 || qpNumber.Offsets[last] != f.qpNumber {
		return Direction{}, false
	}
	offsets := slices.Clone(qpNumber.Offsets)
	offsets[last] = f.direction
	return Direction{
		Reader: Reader{Offsets: offsets, Size: f.size, Shift: f.shift, Mask: f.mask},
		Sends:  f.sends, Receives: f.receives,
	}, true
}
