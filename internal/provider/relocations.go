package provider

import (
	"debug/elf"
	"fmt"
)

// Bounds on each of the tables; libmlx5 has about 500 relocations.
const (
	maxRelocations = 1 << 16
	maxRelrWords   = 1 << 14
)

// relocation is what the loader writes at an address.
type relocation struct {
	// address is the virtual address written, when it lies in this file.
	address uint64
	// imported is the name of the symbol of another file written instead.
	imported string
}

// readRelocations returns what the loader writes, by the address written to.
// It needs load.
func (img *image) readRelocations(d *dynamic, symbols []symbol) (map[uint64]relocation, error) {
	relocations := map[uint64]relocation{}
	err := img.eachRela(d, func(r *elf.Rela64) {
		index, kind := r.Info>>32, uint32(r.Info)
		switch {
		case img.isRelative(kind):
			relocations[r.Off] = relocation{address: uint64(r.Addend)}
		case !img.isSymbolic(kind) || index >= uint64(len(symbols)):
		case symbols[index].defined:
			relocations[r.Off] = relocation{address: symbols[index].value + uint64(r.Addend)}
		default:
			relocations[r.Off] = relocation{imported: symbols[index].name}
		}
	})
	if err != nil {
		return nil, err
	}
	const dtRELR, dtRELRSZ = elf.DynTag(36), elf.DynTag(35)
	return relocations, img.readRelr(d.values[dtRELR], d.values[dtRELRSZ], relocations)
}

// eachRela reads the two tables of relocations with addends.
func (img *image) eachRela(d *dynamic, each func(*elf.Rela64)) error {
	const entrySize = 24
	tables := [...]struct{ at, size elf.DynTag }{{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ}}
	for _, table := range tables {
		at, size := d.values[table.at], d.values[table.size]
		if size/entrySize > maxRelocations {
			return fmt.Errorf("%w: %d relocations", ErrTooLarge, size/entrySize)
		}
		for ; size >= entrySize; at, size = at+entrySize, size-entrySize {
			b := img.bytes(at, entrySize)
			if len(b) < entrySize {
				return fmt.Errorf("%w: relocations outside the file", ErrMalformed)
			}
			var r elf.Rela64
			if err := decode(b, &r); err != nil {
				return err
			}
			each(&r)
		}
	}
	return nil
}

// readRelr reads the compact table of relative relocations: an address, then
// bitmaps of which of the 63 following words are relocated too. The addends
// are in place.
func (img *image) readRelr(at, size uint64, into map[uint64]relocation) error {
	if size/8 > maxRelrWords {
		return fmt.Errorf("%w: %d words of relative relocations", ErrTooLarge, size/8)
	}
	add := func(where uint64) {
		if value, ok := img.word(where); ok {
			into[where] = relocation{address: value}
		}
	}
	var next uint64
	for ; size >= 8; at, size = at+8, size-8 {
		entry, ok := img.word(at)
		if !ok {
			return fmt.Errorf("%w: relative relocations outside the file", ErrMalformed)
		}
		if entry&1 == 0 {
			add(entry)
			next = entry + 8
			continue
		}
		for i, bits := uint64(0), entry>>1; bits != 0; i, bits = i+1, bits>>1 {
			if bits&1 != 0 {
				add(next + i*8)
			}
		}
		next += 63 * 8
		if len(into) > maxRelocations {
			return fmt.Errorf("%w: relative relocations", ErrTooLarge)
		}
	}
	return nil
}

func (img *image) isRelative(kind uint32) bool {
	if img.machine == elf.EM_X86_64 {
		return elf.R_X86_64(kind) == elf.R_X86_64_RELATIVE
	}
	return elf.R_AARCH64(kind) == elf.R_AARCH64_RELATIVE
}

// isSymbolic reports whether the relocation writes the address of a symbol.
func (img *image) isSymbolic(kind uint32) bool {
	if img.machine == elf.EM_X86_64 {
		switch elf.R_X86_64(kind) {
		case elf.R_X86_64_64, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_JMP_SLOT:
			return true
		}
		return false
	}
	switch elf.R_AARCH64(kind) {
	case elf.R_AARCH64_ABS64, elf.R_AARCH64_GLOB_DAT, elf.R_AARCH64_JUMP_SLOT:
		return true
	}
	return false
}
