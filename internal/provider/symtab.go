package provider

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strings"
)

// staticPrefix is what rdma-core's build puts before the names of its static
// libraries (buildlib/sanitize_static_lib.py).
const staticPrefix = `^rdmacore\d+_\d+_`

// crossCheck compares the targets with the symbol table, where the file has
// one: a function must start at each, and must not be named after another.
func (a *analysis) crossCheck(lib *Library) error {
	names, err := a.img.readSymtab()
	if err != nil || len(names) == 0 {
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

// readSymtab returns the names of functions in .symtab by file offset, nil
// when there is none. Section headers are optional, so damaged ones count as
// absent.
func (img *image) readSymtab() (map[uint64][]string, error) {
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
	for i := range sections {
		if elf.SectionType(sections[i].Type) == elf.SHT_SYMTAB && int(sections[i].Link) < len(sections) {
			return img.readSymbolNames(&sections[i], &sections[sections[i].Link])
		}
	}
	return nil, nil
}

func (img *image) readSymbolNames(table, text *elf.Section64) (map[uint64][]string, error) {
	symbols, err := img.readSection(table)
	if err != nil {
		return nil, err
	}
	strtab, err := img.readSection(text)
	if err != nil {
		return nil, err
	}
	names := map[uint64][]string{}
	for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
		var s elf.Sym64
		if err := decode(symbols, &s); err != nil {
			return nil, err
		}
		offset, ok := img.fileOffset(s.Value)
		if elf.SymType(s.Info&0xf) != elf.STT_FUNC || !ok || uint64(s.Name) >= uint64(len(strtab)) {
			continue
		}
		name, _, ok := cutString(strtab[s.Name:min(uint64(s.Name)+256, uint64(len(strtab)))])
		if ok && printable(name, 255) {
			names[offset] = append(names[offset], name)
		}
	}
	return names, nil
}

// readSection reads a section of bounded size.
func (img *image) readSection(s *elf.Section64) ([]byte, error) {
	if s.Size > maxLoaded {
		return nil, fmt.Errorf("%w: section of %d MiB", ErrTooLarge, s.Size>>20)
	}
	return img.readUpTo(s.Off, s.Size)
}
