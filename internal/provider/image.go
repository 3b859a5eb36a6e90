package provider

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds on what is read of one file. The largest provider of rdma-core 65 is
// a tenth of a MiB of code in half a MiB of file.
const (
	maxProgramHeaders = 64
	maxLoaded         = 16 << 20
	maxDynamic        = 4096
)

// segment is one PT_LOAD of the file.
type segment struct {
	vaddr, offset, filesz, memsz uint64
	flags                        elf.ProgFlag
	// data is the segment's part of the file once image.load has run; it may
	// be shorter than filesz when the file is.
	data []byte
}

// span is a range of virtual addresses.
type span struct{ start, end uint64 }

func (s span) contains(address uint64) bool { return address >= s.start && address < s.end }

// image is an ELF file seen as the dynamic loader sees it, through its
// program headers: section headers may be absent or forged, and nothing that
// runs depends on them.
type image struct {
	file    io.ReaderAt
	machine elf.Machine
	loads   []segment
	dynamic span
	frames  span
	relro   []span
	// sectionOffset is where the optional section headers are, sectionNames which
	// of them has their names.
	sectionOffset uint64
	sectionCount  int
	sectionNames  int
}

// openImage reads the headers only.
func openImage(file io.ReaderAt) (*image, error) {
	var raw [64]byte
	if n, _ := file.ReadAt(raw[:], 0); n < 16 || !bytes.Equal(raw[:4], []byte(elf.ELFMAG)) {
		return nil, ErrNotELF
	}
	if elf.Class(raw[elf.EI_CLASS]) == elf.ELFCLASS32 {
		return nil, Err32Bit
	}
	if elf.Class(raw[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(raw[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, ErrMachine
	}
	var header elf.Header64
	if err := decode(raw[:], &header); err != nil {
		return nil, err
	}
	img := &image{
		file:          file,
		machine:       elf.Machine(header.Machine),
		sectionOffset: header.Shoff,
		sectionCount:  int(header.Shnum),
		sectionNames:  int(header.Shstrndx),
	}
	if img.machine != elf.EM_X86_64 && img.machine != elf.EM_AARCH64 {
		return nil, fmt.Errorf("%w: %v", ErrMachine, img.machine)
	}
	return img, img.readPrograms(&header)
}

func (img *image) readPrograms(header *elf.Header64) error {
	const size = 56
	if header.Phentsize != size || header.Phnum > maxProgramHeaders {
		return fmt.Errorf("%w: %d program headers of %d bytes", ErrMalformed, header.Phnum, header.Phentsize)
	}
	raw := make([]byte, int(header.Phnum)*size)
	if err := img.readFile(header.Phoff, raw); err != nil {
		return fmt.Errorf("program headers: %w", err)
	}
	for ; len(raw) >= size; raw = raw[size:] {
		var p elf.Prog64
		if err := decode(raw, &p); err != nil {
			return err
		}
		if err := img.addProgram(&p); err != nil {
			return err
		}
	}
	return nil
}

func (img *image) addProgram(p *elf.Prog64) error {
	end := p.Vaddr + p.Memsz
	if end < p.Vaddr || p.Off+p.Filesz < p.Off || p.Off+p.Filesz > 1<<62 || p.Filesz > p.Memsz {
		return fmt.Errorf("%w: program header %v wraps around", ErrMalformed, elf.ProgType(p.Type))
	}
	where := span{p.Vaddr, end}
	switch elf.ProgType(p.Type) {
	case elf.PT_LOAD:
		img.loads = append(img.loads, segment{
			vaddr: p.Vaddr, offset: p.Off, filesz: p.Filesz, memsz: p.Memsz, flags: elf.ProgFlag(p.Flags),
		})
	case elf.PT_DYNAMIC:
		img.dynamic = where
	case elf.PT_GNU_EH_FRAME:
		img.frames = where
	case elf.PT_GNU_RELRO:
		img.relro = append(img.relro, where)
	}
	return nil
}

// load reads all segments into memory, once.
func (img *image) load() error {
	if err := img.checkOverlap(); err != nil {
		return err
	}
	var total uint64
	for i := range img.loads {
		total += img.loads[i].filesz
		if img.loads[i].filesz > maxLoaded || total > maxLoaded {
			return fmt.Errorf("%w: segments of more than %d MiB", ErrTooLarge, maxLoaded>>20)
		}
	}
	for i := range img.loads {
		s := &img.loads[i]
		if s.data != nil {
			continue
		}
		data, err := img.readUpTo(s.offset, s.filesz)
		if err != nil {
			return err
		}
		s.data = data
	}
	return nil
}

// checkOverlap refuses files in which code is at two addresses, or something
// else is at the address of code: a place in the file would not say what runs.
// Segments that share a page do not overlap.
func (img *image) checkOverlap() error {
	overlap := func(a, aSize, b, bSize uint64) bool {
		return aSize > 0 && bSize > 0 && a < b+bSize && b < a+aSize
	}
	for i := range img.loads {
		code := &img.loads[i]
		if code.flags&elf.PF_X == 0 {
			continue
		}
		for j := range img.loads {
			s := &img.loads[j]
			if i != j && (overlap(code.offset, code.filesz, s.offset, s.filesz) || overlap(code.vaddr, code.memsz, s.vaddr, s.memsz)) {
				return fmt.Errorf("%w: the code at %#x overlaps the segment at %#x", ErrMalformed, code.vaddr, s.vaddr)
			}
		}
	}
	return nil
}

// readUpTo reads as much of the range as the file has: a forged size does not
// cost more memory than the file is long.
func (img *image) readUpTo(offset, size uint64) ([]byte, error) {
	if offset > 1<<62 || size > 1<<62 {
		return nil, fmt.Errorf("%w: %d bytes at file offset %#x", ErrMalformed, size, offset)
	}
	data, err := io.ReadAll(io.NewSectionReader(img.file, int64(offset), int64(size)))
	if err != nil {
		return nil, fmt.Errorf("read %d bytes at file offset %#x: %w", size, offset, err)
	}
	return data, nil
}

// readFile fills the buffer from the file.
func (img *image) readFile(offset uint64, buffer []byte) error {
	if offset > 1<<62 {
		return fmt.Errorf("%w: file offset %#x", ErrMalformed, offset)
	}
	n, err := img.file.ReadAt(buffer, int64(offset))
	if n == len(buffer) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: file ends before offset %#x", ErrMalformed, offset+uint64(len(buffer)))
	}
	return err
}

// fileOffset converts a virtual address.
func (img *image) fileOffset(address uint64) (uint64, bool) {
	for i := range img.loads {
		s := &img.loads[i]
		if address >= s.vaddr && address-s.vaddr < s.filesz {
			return s.offset + (address - s.vaddr), true
		}
	}
	return 0, false
}

// address converts a file offset of code.
func (img *image) address(offset uint64) (uint64, bool) {
	for i := range img.loads {
		s := &img.loads[i]
		if s.flags&elf.PF_X != 0 && offset >= s.offset && offset-s.offset < s.filesz {
			return s.vaddr + (offset - s.offset), true
		}
	}
	return 0, false
}

// bytes returns what is at the address, up to n bytes, less at the end of a
// segment. It needs load.
func (img *image) bytes(address uint64, n int) []byte {
	for i := range img.loads {
		s := &img.loads[i]
		if address < s.vaddr || address-s.vaddr >= uint64(len(s.data)) {
			continue
		}
		data := s.data[address-s.vaddr:]
		return data[:min(n, len(data))]
	}
	return nil
}

// word reads 8 bytes, 4 bytes with half.
func (img *image) word(address uint64) (uint64, bool) {
	b := img.bytes(address, 8)
	if len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func (img *image) half(address uint64) (uint32, bool) {
	b := img.bytes(address, 4)
	if len(b) < 4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// text reads a NUL-terminated string of at most 255 bytes.
func (img *image) text(address uint64) (string, bool) {
	b := img.bytes(address, 256)
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return "", false
	}
	return string(b[:end]), true
}

// executable reports whether code can be at the address.
func (img *image) executable(address uint64) bool {
	for i := range img.loads {
		s := &img.loads[i]
		if s.flags&elf.PF_X != 0 && address >= s.vaddr && address-s.vaddr < s.filesz {
			return true
		}
	}
	return false
}

// fixed reports whether the loader makes the address read-only after
// relocation, so that what the file says is what the program sees.
func (img *image) fixed(address uint64) bool {
	for _, r := range img.relro {
		if r.contains(address) {
			return true
		}
	}
	for i := range img.loads {
		s := &img.loads[i]
		if s.flags&elf.PF_W == 0 && address >= s.vaddr && address-s.vaddr < s.filesz {
			return true
		}
	}
	return false
}

// decode reads a little-endian structure.
func decode(raw []byte, into any) error {
	if _, err := binary.Decode(raw, binary.LittleEndian, into); err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return nil
}
