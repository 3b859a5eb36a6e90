package tracer

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
)

// table is an array map that is mapped into memory, so that a scan over all
// its elements costs no system call, and single fields can be written without
// touching those that BPF programs write.
type table[T any] struct {
	memory *ebpf.Memory
	name   string
	length uint32
	stride uint64
}

func newTable[T any](m *ebpf.Map, name string) (*table[T], error) {
	var element T
	size := uint32(unsafe.Sizeof(element))
	if m.ValueSize() != size {
		return nil, fmt.Errorf("map %s: its values have %d bytes, expected %d", name, m.ValueSize(), size)
	}
	memory, err := m.Memory()
	if err != nil {
		return nil, fmt.Errorf("mapping %s into memory: %w", name, err)
	}
	return &table[T]{memory: memory, name: name, length: m.MaxEntries(), stride: uint64(size+7) &^ 7}, nil
}

// load copies element i. BPF programs may be writing it: each field is whole,
// the fields may be of different moments.
func (t *table[T]) load(i uint32) (T, error) {
	var element T
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&element)), unsafe.Sizeof(element))
	if err := t.loadBytes(i, 0, buffer); err != nil {
		return element, err
	}
	return element, nil
}

func (t *table[T]) loadBytes(i uint32, offset uintptr, into []byte) error {
	if i >= t.length {
		return fmt.Errorf("map %s has no element %d", t.name, i)
	}
	at := uint64(i)*t.stride + uint64(offset)
	if _, err := t.memory.ReadAt(into, int64(at)); err != nil {
		return fmt.Errorf("reading element %d of map %s: %w", i, t.name, err)
	}
	return nil
}

func (t *table[T]) storeBytes(i uint32, offset uintptr, from []byte) error {
	if i >= t.length {
		return fmt.Errorf("map %s has no element %d", t.name, i)
	}
	at := uint64(i)*t.stride + uint64(offset)
	if _, err := t.memory.WriteAt(from, int64(at)); err != nil {
		return fmt.Errorf("writing element %d of map %s: %w", i, t.name, err)
	}
	return nil
}

func (t *table[T]) store64(i uint32, offset uintptr, value uint64) error {
	return t.storeBytes(i, offset, binary.NativeEndian.AppendUint64(nil, value))
}

func (t *table[T]) store32(i uint32, offset uintptr, value uint32) error {
	return t.storeBytes(i, offset, binary.NativeEndian.AppendUint32(nil, value))
}

func (t *table[T]) store(i uint32, element *T) error {
	return t.storeBytes(i, 0, memoryOf(element))
}

// memoryOf is the memory of a value without pointers.
func memoryOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}
