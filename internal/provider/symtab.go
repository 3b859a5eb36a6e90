package provider

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// staticPrefix is what rdma-core's build puts before the names of its static
// libraries (buildlib/sanitize_static_lib.py).
const staticPrefix = `^rdmacore\d+_\d+_`

// crossCheck compares the targets with the symbol table, where the file has
// one: a function must start at each, and must not be named after another.
func (a *analysis) crossCheck(lib *Library) error {
	wanted := map[uint64]bool{}
	for i := range lib.Targets {
		wanted[lib.Targets[i].Offset] = true
	}
	names, err := a.img.readSymtab(wanted)
	if err != nil || names == nil {
		return err
	}
	prefix := regexp.MustCompile(staticPrefix)
	for i := range lib.Targets {
		t := &lib.Targets[i]
		found := names[t.Offset]
		if len(found) == 0 {
			return fmt.Errorf("%w: no function starts at file offset %#x, found as %s", ErrSymbolMismatch, t.Offset, t.Function)
		}
		if t.Symbol != "" {
			continue
		}
		named := false
		for _, name := range found {
			name = prefix.ReplaceAllString(name, "")
			if verb, ok := verbOf(name); ok && verb != t.Function {
				continue
			}
			t.Symbol, named = name, true
			break
		}
		if !named {
			return fmt.Errorf("%w: %v starts at file offset %#x, found as %s", ErrSymbolMismatch, found, t.Offset, t.Function)
		}
	}
	return nil
}

// verbOf tells which function a provider's author means by a name such as
// mlx5_poll_cq_v1 or c4iw_post_receive.
func verbOf(name string) (Function, bool) {
	switch {
	case strings.Contains(name, "post_srq"):
		return PostSRQRecv, true
	case strings.Contains(name, "post_send"):
		return PostSend, true
	case strings.Contains(name, "post_rec"):
		return PostRecv, true
	case strings.Contains(name, "poll_cq"):
		return PollCQ, true
	default:
		return 0, false
	}
}

// maxAliases bounds the names of one function that are compared.
const maxAliases = 16

// readSymtab returns the names of the functions in .symtab that start at the
// wanted file offsets, nil when there is no function in it. Section headers are
// optional, so damaged ones count as absent.
func (img *image) readSymtab(wanted map[uint64]bool) (map[uint64][]string, error) {
	sections, err := img.readSections()
	if err != nil {
		return nil, err
	}
	for i := range sections {
		if elf.SectionType(sections[i].Type) == elf.SHT_SYMTAB && int(sections[i].Link) < len(sections) {
			return img.readSymbolNames(&sections[i], &sections[sections[i].Link], wanted)
		}
	}
	return nil, nil
}

// readSections returns the section headers, nil when there are none.
func (img *image) readSections() ([]elf.Section64, error) {
	const headerSize = 64
	if img.sectionOffset == 0 || img.sectionCount == 0 {
		return nil, nil
	}
	raw := make([]byte, img.sectionCount*headerSize)
	if img.readFile(img.sectionOffset, raw) != nil {
		return nil, nil
	}
	sections := make([]elf.Section64, img.sectionCount)
	for i := range sections {
		if err := decode(raw[i*headerSize:], &sections[i]); err != nil {
			return nil, err
		}
	}
	return sections, nil
}

// readSymbolNames streams the table and keeps the names that are asked for: in a
// forged file every symbol may have the same long name.
func (img *image) readSymbolNames(table, text *elf.Section64, wanted map[uint64]bool) (map[uint64][]string, error) {
	for _, s := range []*elf.Section64{table, text} {
		if s.Size > maxLoaded {
			return nil, fmt.Errorf("%w: section of %d MiB", ErrTooLarge, s.Size>>20)
		}
		if s.Off > 1<<62 {
			return nil, fmt.Errorf("%w: section at file offset %#x", ErrMalformed, s.Off)
		}
	}
	symbols := bufio.NewReaderSize(io.NewSectionReader(img.file, int64(table.Off), int64(table.Size)), 64<<10)
	var names map[uint64][]string
	var raw [elf.Sym64Size]byte
	for {
		_, err := io.ReadFull(symbols, raw[:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read symbol table: %w", err)
		}
		// The fields of Elf64_Sym: name, type and binding, value.
		at, info, value := binary.LittleEndian.Uint32(raw[0:]), raw[4], binary.LittleEndian.Uint64(raw[8:])
		offset, ok := img.fileOffset(value)
		if elf.SymType(info&0xf) != elf.STT_FUNC || !ok || uint64(at) >= text.Size {
			continue
		}
		if names == nil {
			names = map[uint64][]string{}
		}
		if !wanted[offset] || len(names[offset]) >= maxAliases {
			continue
		}
		name, err := img.readName(text, uint64(at))
		if err != nil {
			return nil, err
		}
		if printable(name, 255) {
			names[offset] = append(names[offset], name)
		}
	}
}

// readName reads a name of at most 255 bytes from a string table in the file, ""
// when there is none.
func (img *image) readName(table *elf.Section64, at uint64) (string, error) {
	raw, err := img.readUpTo(table.Off+at, min(256, table.Size-at))
	if err != nil {
		return "", err
	}
	name, _, ok := cutString(raw)
	if !ok {
		return "", nil
	}
	return name, nil
}
