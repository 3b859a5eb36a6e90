package provider

import (
	"debug/elf"
	"fmt"
	"sort"
)

// frameSection is the section with the descriptions themselves. Linkers make a
// search table of it only where unwinding at run time is to find it: statically
// linked programs have none.
const frameSection = ".eh_frame"

// walkFrames builds the search table from the descriptions, whose section it
// finds by its name. It needs load.
func (img *image) walkFrames() (*frameTable, error) {
	where, ok := img.section(frameSection)
	if !ok {
		return nil, fmt.Errorf("%w: neither .eh_frame_hdr nor a section %s, so the bounds of functions are unknown", ErrUnresolved, frameSection)
	}
	table := &frameTable{img: img}
	for at := where.start; at+12 <= where.end; {
		length, ok := img.half(at)
		if !ok || length == 0xffffffff {
			return nil, fmt.Errorf("%w: %s is outside the file or describes more than 4 GiB", ErrMalformed, frameSection)
		}
		if len(table.starts) == maxFrames {
			return nil, fmt.Errorf("%w: %s of more than %d functions", ErrTooLarge, frameSection, maxFrames)
		}
		if length > 0 {
			table.take(at)
		}
		// Where descriptions of several files were put together, some end in 0.
		at += 4 + uint64(length)
	}
	sort.Sort(byStart{table})
	return table, nil
}

// take adds the description at an address if it is one of a function: what the
// functions of a file have in common is described there, too.
func (t *frameTable) take(at uint64) {
	const pcrelSdata4 = 0x1b
	common, ok := t.img.half(at + 4)
	if !ok || common == 0 {
		return
	}
	encoding, ok := t.encoding(at + 4 - uint64(common))
	start, known := t.img.half(at + 8)
	if !ok || !known || encoding != pcrelSdata4 {
		return
	}
	t.starts = append(t.starts, at+8+uint64(int64(int32(start))))
	t.fdes = append(t.fdes, at)
}

// byStart sorts both columns of the table.
type byStart struct{ *frameTable }

func (s byStart) Len() int           { return len(s.starts) }
func (s byStart) Less(i, j int) bool { return s.starts[i] < s.starts[j] }
func (s byStart) Swap(i, j int) {
	s.starts[i], s.starts[j] = s.starts[j], s.starts[i]
	s.fdes[i], s.fdes[j] = s.fdes[j], s.fdes[i]
}

// section finds a section that is loaded, by its name. Sections are optional:
// damaged ones count as absent.
func (img *image) section(name string) (span, bool) {
	sections, err := img.readSections()
	if err != nil || img.sectionNames >= len(sections) {
		return span{}, false
	}
	names := &sections[img.sectionNames]
	for i := range sections {
		s := &sections[i]
		if s.Flags&uint64(elf.SHF_ALLOC) == 0 || uint64(s.Name) >= names.Size || s.Addr+s.Size < s.Addr {
			continue
		}
		if found, err := img.readName(names, uint64(s.Name)); err == nil && found == name {
			return span{s.Addr, s.Addr + s.Size}, true
		}
	}
	return span{}, false
}
