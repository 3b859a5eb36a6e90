package provider

import (
	"fmt"
	"sort"
)

// Bounds on the table of function bounds.
const (
	maxFrames       = 1 << 18
	maxFunctionSize = 1 << 20
)

// frameTable is the sorted search table of .eh_frame_hdr: the start of every
// function (and of every part the compiler split off) with the address of
// its frame description. Stripped libraries keep it, unwinding needs it.
type frameTable struct {
	img    *image
	starts []uint64
	fdes   []uint64
}

// readFrames reads the search table. The format is that of the Linux Standard
// Base, chapter "Exception Frames". It needs load.
func (img *image) readFrames() (*frameTable, error) {
	table := &frameTable{img: img}
	header := img.frames.start
	b := img.bytes(header, 12)
	if img.frames.start == img.frames.end {
		return img.walkFrames()
	}
	if len(b) < 12 {
		return nil, fmt.Errorf("%w: .eh_frame_hdr is outside the file", ErrMalformed)
	}
	// Every linker writes version 1, a 4-byte count and pairs of 4-byte
	// offsets from the header.
	const pcrel4, udata4, datarel4 = 0x1b, 0x03, 0x3b
	if b[0] != 1 || b[1] != pcrel4 || b[2] != udata4 || b[3] != datarel4 {
		return nil, fmt.Errorf("%w: .eh_frame_hdr in an encoding that no linker writes: % x", ErrMalformed, b[:4])
	}
	count, _ := img.half(header + 8)
	if count > maxFrames || uint64(count)*8+12 > img.frames.end-img.frames.start {
		return nil, fmt.Errorf("%w: .eh_frame_hdr of %d entries", ErrMalformed, count)
	}
	for i := range uint64(count) {
		start, ok1 := img.half(header + 12 + i*8)
		fde, ok2 := img.half(header + 16 + i*8)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("%w: .eh_frame_hdr is outside the file", ErrMalformed)
		}
		table.starts = append(table.starts, header+uint64(int64(int32(start))))
		table.fdes = append(table.fdes, header+uint64(int64(int32(fde))))
	}
	if !sort.SliceIsSorted(table.starts, func(i, j int) bool { return table.starts[i] < table.starts[j] }) {
		return nil, fmt.Errorf("%w: .eh_frame_hdr is not sorted", ErrMalformed)
	}
	return table, nil
}

// function returns the bounds of the function (or split-off part) that
// contains the address.
func (t *frameTable) function(address uint64) (span, bool) {
	i := sort.Search(len(t.starts), func(i int) bool { return t.starts[i] > address }) - 1
	if i < 0 {
		return span{}, false
	}
	size, ok := t.size(t.fdes[i])
	if !ok || size > maxFunctionSize {
		return span{}, false
	}
	bounds := span{t.starts[i], t.starts[i] + size}
	if i+1 < len(t.starts) {
		// Functions of a genuine file do not overlap.
		bounds.end = min(bounds.end, t.starts[i+1])
	}
	return bounds, bounds.contains(address)
}

// size reads the length of the code from a frame description entry:
// length, offset to the common entry, start, length of code. Code is
// described with 4-byte values in every 64-bit library of less than 2 GiB.
func (t *frameTable) size(fde uint64) (uint64, bool) {
	length, ok1 := t.img.half(fde)
	common, ok2 := t.img.half(fde + 4)
	size, ok3 := t.img.half(fde + 12)
	if !ok1 || !ok2 || !ok3 || length < 12 || length == 0xffffffff || common == 0 {
		return 0, false
	}
	encoding, ok := t.encoding(fde + 4 - uint64(common))
	const sdata4, udata4 = 0x0b, 0x03
	if !ok || (encoding&0x0f != sdata4 && encoding&0x0f != udata4) {
		return 0, false
	}
	return uint64(size), true
}

// encoding reads how a common information entry says its frame entries write
// addresses (the augmentation 'R').
func (t *frameTable) encoding(cie uint64) (byte, bool) {
	b := t.img.bytes(cie, 64)
	if len(b) < 12 || b[8] != 1 && b[8] != 3 {
		return 0, false
	}
	version := b[8]
	augmentation, rest, ok := cutString(b[9:])
	if !ok || augmentation == "" || augmentation[0] != 'z' {
		return 0, false
	}
	// Skip the alignment factors, the return register and the length of the
	// augmentation data.
	for range 2 {
		rest = skipLEB(rest)
	}
	if version == 1 && len(rest) > 0 {
		rest = rest[1:]
	} else {
		rest = skipLEB(rest)
	}
	rest = skipLEB(rest)
	for _, letter := range augmentation[1:] {
		if len(rest) == 0 {
			return 0, false
		}
		switch letter {
		case 'R':
			return rest[0], true
		case 'L':
			rest = rest[1:]
		case 'P':
			if rest[0]&0x0f != 0x0b && rest[0]&0x0f != 0x03 || len(rest) < 5 {
				return 0, false
			}
			rest = rest[5:]
		case 'S', 'B':
		default:
			return 0, false
		}
	}
	return 0, false
}

func cutString(b []byte) (string, []byte, bool) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), b[i+1:], true
		}
	}
	return "", nil, false
}

func skipLEB(b []byte) []byte {
	for i, c := range b {
		if c&0x80 == 0 {
			return b[i+1:]
		}
	}
	return nil
}
