package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// Offsets into struct ibv_qp and struct ibv_context (infiniband/verbs.h), the same
// in every release of rdma-core.
const (
	qpContext = 0
	qpSendCQ  = 24
	qpNumber  = 52
	qpBytes   = 56

	contextPollCQ      = 96
	contextPostSRQRecv = 168
	contextPostSend    = 208
	contextPostRecv    = 216
	contextBytes       = 224
)

// errNotMadeYet says that the memory of the process does not have the QP that the
// kernel has: libibverbs fills in what the kernel answered.
var errNotMadeYet = errors.New("its ibv_qp is not filled in")

// handlesOf reads from the memory of a process, at the handle that the kernel has
// of a QP, by which functions it posts and polls. Nothing else of the process is
// read.
func handlesOf(memory io.ReaderAt, qp userQP) (provider.Handles, error) {
	var object [qpBytes]byte
	err := readMemory(memory, object[:], qp.handle, "ibv_qp")
	if errors.Is(err, unix.EIO) {
		return nil, errNotMadeYet // The page is not there yet, or not any more.
	}
	if err != nil {
		return nil, err
	}
	word := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
	if binary.LittleEndian.Uint32(object[qpNumber:]) != qp.number || word(object[qpSendCQ:]) != qp.sendCQ {
		return nil, errNotMadeYet
	}
	var context [contextBytes]byte
	if err := readMemory(memory, context[:], word(object[qpContext:]), "ibv_context"); err != nil {
		return nil, err
	}
	return provider.Handles{
		provider.PollCQ:      word(context[contextPollCQ:]),
		provider.PostSend:    word(context[contextPostSend:]),
		provider.PostRecv:    word(context[contextPostRecv:]),
		provider.PostSRQRecv: word(context[contextPostSRQRecv:]),
	}, nil
}

func readMemory(memory io.ReaderAt, into []byte, address uint64, what string) error {
	if address > 1<<62 {
		return fmt.Errorf("its %s is said to be at %#x, which is no address of a process", what, address)
	}
	if _, err := memory.ReadAt(into, int64(address)); err != nil {
		return fmt.Errorf("reading its %s at %#x: %w", what, address, err)
	}
	return nil
}
