package provider

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds on the dynamic section. A string table that is longer than maxStrings
// belongs to a file that load refuses.
const (
	maxStrings = maxLoaded
	maxSymbols = 1 << 18
)

// dynamic is the dynamic section: what the loader knows of the file.
type dynamic struct {
	values map[elf.DynTag]uint64
}

// readDynamic reads the dynamic section from the file; it does not need load.
func (img *image) readDynamic() (*dynamic, error) {
	d := &dynamic{values: map[elf.DynTag]uint64{}}
	size := img.dynamic.end - img.dynamic.start
	offset, ok := img.fileOffset(img.dynamic.start)
	if size == 0 || !ok {
		return d, nil
	}
	raw := make([]byte, min(size, maxDynamic*16)/16*16)
	if err := img.readFile(offset, raw); err != nil {
		return nil, fmt.Errorf("dynamic section: %w", err)
	}
	for ; len(raw) >= 16; raw = raw[16:] {
		var entry elf.Dyn64
		if err := decode(raw, &entry); err != nil {
			return nil, err
		}
		tag := elf.DynTag(entry.Tag)
		if tag == elf.DT_NULL {
			break
		}
		if _, twice := d.values[tag]; !twice {
			d.values[tag] = entry.Val
		}
	}
	return d, nil
}

// mentions reports whether the name is in the dynamic string table. It
// streams the table from the file, so that a "no" about a file of any size
// costs little: nearly every file of a machine has no part in verbs. What lies
// beyond maxStrings is not read.
func (img *image) mentions(d *dynamic, name string) (bool, error) {
	address, size := d.values[elf.DT_STRTAB], d.values[elf.DT_STRSZ]
	offset, ok := img.fileOffset(address)
	if size == 0 || !ok {
		return false, nil
	}
	size = min(size, maxStrings)
	wanted := append([]byte(name), 0)
	keep := len(wanted) - 1
	buffer := make([]byte, min(size, 64<<10)+uint64(keep))
	table := io.NewSectionReader(img.file, int64(offset), int64(size))
	have := 0
	for {
		n, err := io.ReadFull(table, buffer[have:])
		have += n
		if bytes.Contains(buffer[:have], wanted) {
			return true, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read dynamic string table: %w", err)
		}
		// A name may lie across two reads.
		have = copy(buffer, buffer[have-min(keep, have):have])
	}
}

// symbol is one entry of the dynamic symbol table.
type symbol struct {
	name    string
	value   uint64
	size    uint64
	defined bool
	// hidden marks a version that is only there for old binaries: nobody
	// links against it today.
	hidden  bool
	version string
}

// readSymbols reads the dynamic symbol table with its versions. It needs load.
func (img *image) readSymbols(d *dynamic) ([]symbol, error) {
	count, err := img.countSymbols(d)
	if err != nil {
		return nil, err
	}
	versions := img.readVersions(d)
	table := img.readStrings(d)
	symbols := make([]symbol, 0, count)
	for i := range count {
		var raw elf.Sym64
		b := img.bytes(d.values[elf.DT_SYMTAB]+uint64(i)*elf.Sym64Size, elf.Sym64Size)
		if len(b) < elf.Sym64Size {
			return nil, fmt.Errorf("%w: dynamic symbol %d of %d is outside the file", ErrMalformed, i, count)
		}
		if err := decode(b, &raw); err != nil {
			return nil, err
		}
		s := symbol{name: nameIn(table, raw.Name), value: raw.Value, size: raw.Size, defined: elf.SectionIndex(raw.Shndx) != elf.SHN_UNDEF}
		if at := d.values[elf.DT_VERSYM]; at != 0 {
			if v := img.bytes(at+uint64(i)*2, 2); len(v) == 2 {
				index := uint16(v[0]) | uint16(v[1])<<8
				s.hidden = index&0x8000 != 0
				s.version = versions[index&0x7fff]
			}
		}
		symbols = append(symbols, s)
	}
	return symbols, nil
}

// readStrings returns the dynamic string table. Names are parts of this one copy:
// those of a forged file may overlap, and copies of them be of any length in all.
func (img *image) readStrings(d *dynamic) string {
	return string(img.bytes(d.values[elf.DT_STRTAB], int(min(d.values[elf.DT_STRSZ], maxStrings))))
}

// nameIn returns the NUL-terminated name at a place in a string table, "" when it
// is longer than 255 bytes or not there.
func nameIn(table string, at uint32) string {
	if uint64(at) >= uint64(len(table)) {
		return ""
	}
	name, _, ended := strings.Cut(table[at:min(int(at)+256, len(table))], "\x00")
	if !ended {
		return ""
	}
	return name
}

// countSymbols takes the number of symbols from the hash table; the dynamic
// section itself does not tell it. DT_GNU_HASH covers what the file defines;
// imports lie before that, but where nothing is defined the table is empty
// and only the relocations tell which symbols there are.
func (img *image) countSymbols(d *dynamic) (int, error) {
	var count uint64
	switch {
	case d.values[elf.DT_HASH] != 0:
		chains, ok := img.half(d.values[elf.DT_HASH] + 4)
		if !ok {
			return 0, fmt.Errorf("%w: DT_HASH is outside the file", ErrMalformed)
		}
		count = uint64(chains)
	case d.values[elf.DT_GNU_HASH] != 0:
		n, err := img.countGNUHash(d.values[elf.DT_GNU_HASH])
		if err != nil {
			return 0, err
		}
		count = n
	}
	err := img.eachRela(d, func(r *elf.Rela64) {
		count = max(count, r.Info>>32+1)
	})
	if err != nil {
		return 0, err
	}
	if count > maxSymbols {
		return 0, fmt.Errorf("%w: %d dynamic symbols", ErrTooLarge, count)
	}
	return int(count), nil
}

// countGNUHash follows the last chain of DT_GNU_HASH to its end.
func (img *image) countGNUHash(at uint64) (uint64, error) {
	buckets, ok1 := img.half(at)
	first, ok2 := img.half(at + 4)
	bloom, ok3 := img.half(at + 8)
	if !ok1 || !ok2 || !ok3 || buckets > maxSymbols || bloom > maxSymbols {
		return 0, fmt.Errorf("%w: DT_GNU_HASH", ErrMalformed)
	}
	table := at + 16 + uint64(bloom)*8
	last := uint32(0)
	for i := range uint64(buckets) {
		v, ok := img.half(table + i*4)
		if !ok {
			return 0, fmt.Errorf("%w: DT_GNU_HASH is outside the file", ErrMalformed)
		}
		last = max(last, v)
	}
	if last < first {
		return uint64(first), nil
	}
	chains := table + uint64(buckets)*4
	for ; last < maxSymbols; last++ {
		v, ok := img.half(chains + uint64(last-first)*4)
		if !ok {
			return 0, fmt.Errorf("%w: DT_GNU_HASH chain is outside the file", ErrMalformed)
		}
		if v&1 != 0 {
			return uint64(last) + 1, nil
		}
	}
	return 0, fmt.Errorf("%w: DT_GNU_HASH chain without end", ErrMalformed)
}

// readVersions returns the names of the symbol versions by index, those the
// file defines and those it needs.
func (img *image) readVersions(d *dynamic) map[uint16]string {
	const maxVersions = 4096
	names := map[uint16]string{}
	at := d.values[elf.DT_VERDEF]
	for range maxVersions {
		var def struct {
			Version, Flags, Index, Count uint16
			Hash, Aux, Next              uint32
		}
		if at == 0 || decode(img.bytes(at, 20), &def) != nil {
			break
		}
		if name, ok := img.half(at + uint64(def.Aux)); ok {
			names[def.Index&0x7fff], _ = img.text(d.values[elf.DT_STRTAB] + uint64(name))
		}
		if def.Next == 0 {
			break
		}
		at += uint64(def.Next)
	}
	total := 0
	at = d.values[elf.DT_VERNEED]
	for range maxVersions {
		var need struct {
			Version, Count  uint16
			File, Aux, Next uint32
		}
		if at == 0 || decode(img.bytes(at, 16), &need) != nil {
			break
		}
		aux := at + uint64(need.Aux)
		for range need.Count {
			var entry struct {
				Hash         uint32
				Flags, Other uint16
				Name, Next   uint32
			}
			if total++; total > maxVersions || decode(img.bytes(aux, 16), &entry) != nil {
				break
			}
			names[entry.Other&0x7fff], _ = img.text(d.values[elf.DT_STRTAB] + uint64(entry.Name))
			if entry.Next == 0 {
				break
			}
			aux += uint64(entry.Next)
		}
		if need.Next == 0 {
			break
		}
		at += uint64(need.Next)
	}
	return names
}

// privateABI returns the version of verbs_set_ops when it is one of the
// private interface, whose names all begin with IBVERBS_PRIVATE_.
func privateABI(symbols []symbol) string {
	for i := range symbols {
		if symbols[i].name == setOpsName && !symbols[i].hidden && strings.HasPrefix(symbols[i].version, "IBVERBS_PRIVATE_") {
			return symbols[i].version
		}
	}
	return ""
}
