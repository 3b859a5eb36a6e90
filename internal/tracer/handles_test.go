package tracer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// fakeMemory is the memory of a process from 0 on, and what was read of it.
type fakeMemory struct {
	data []byte
	read int
}

func (m *fakeMemory) ReadAt(p []byte, offset int64) (int, error) {
	m.read += len(p)
	return bytes.NewReader(m.data).ReadAt(p, offset)
}

func (m *fakeMemory) put64(at int, value uint64) { binary.LittleEndian.PutUint64(m.data[at:], value) }

// processWithQP has an ibv_qp at 0x100 and its ibv_context at 0x200.
func processWithQP() (*fakeMemory, userQP) {
	m := &fakeMemory{data: make([]byte, 0x400)}
	m.put64(0x100, 0x200)
	m.put64(0x100+24, 0x180)
	binary.LittleEndian.PutUint32(m.data[0x100+52:], 17)
	m.put64(0x200+96, 0xa1)
	m.put64(0x200+168, 0xa2)
	m.put64(0x200+208, 0xa3)
	m.put64(0x200+216, 0xa4)
	return m, userQP{number: 17, handle: 0x100, sendCQ: 0x180}
}

func TestHandlesOf(t *testing.T) {
	memory, qp := processWithQP()
	got, err := handlesOf(memory, qp)
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Handles{provider.PollCQ: 0xa1, provider.PostSRQRecv: 0xa2, provider.PostSend: 0xa3, provider.PostRecv: 0xa4}
	for function, address := range want {
		if got[function] != address {
			t.Errorf("%s at %#x, want %#x", function, got[function], address)
		}
	}
	if memory.read != qpBytes+contextBytes {
		t.Errorf("%d bytes of the process were read", memory.read)
	}
}

// What is at the handle has to be the QP that the kernel knows.
func TestHandlesOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fakeMemory, *userQP)
		err    error
	}{
		"another number":         {func(_ *fakeMemory, qp *userQP) { qp.number = 18 }, errNotMadeYet},
		"another CQ":             {func(_ *fakeMemory, qp *userQP) { qp.sendCQ = 0x188 }, errNotMadeYet},
		"a handle to nowhere":    {func(_ *fakeMemory, qp *userQP) { qp.handle = 0x3ff }, io.EOF},
		"a context nowhere":      {func(m *fakeMemory, _ *userQP) { m.put64(0x100, 0x3f0) }, io.EOF},
		"a handle of the kernel": {func(_ *fakeMemory, qp *userQP) { qp.handle = 0xffff888000000000 }, nil},
	} {
		memory, qp := processWithQP()
		tc.change(memory, &qp)
		got, err := handlesOf(memory, qp)
		if err == nil || tc.err != nil && !errors.Is(err, tc.err) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// unmapped is memory without a page at the handle.
type unmapped struct{}

func (unmapped) ReadAt([]byte, int64) (int, error) { return 0, unix.EIO }

// A handle where no memory is yet says no more than one that is not filled in.
func TestHandlesOfUnmapped(t *testing.T) {
	_, qp := processWithQP()
	if _, err := handlesOf(unmapped{}, qp); !errors.Is(err, errNotMadeYet) {
		t.Error(err)
	}
}
