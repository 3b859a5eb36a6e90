package provider

import (
	"encoding/binary"
	"sort"
)

// referencesX86 finds 4-byte displacements that, relative to the byte after
// them, point at one of the addresses: calls, jumps and loads of addresses
// alike. What is found this way is then decoded properly.
func referencesX86(s *segment, to map[uint64]bool, found func(at uint64)) {
	for i := 0; i+4 <= len(s.data); i++ {
		displacement := int64(int32(binary.LittleEndian.Uint32(s.data[i:])))
		if to[s.vaddr+uint64(i)+4+uint64(displacement)] {
			found(s.vaddr + uint64(i))
		}
	}
}

// referencesA64 finds branches to one of the addresses and adrp instructions
// for the page of one.
func referencesA64(s *segment, to map[uint64]bool, found func(at uint64)) {
	pages := map[int64]bool{}
	for at := range to {
		pages[int64(at&^0xfff)] = true
	}
	for i := 0; i+4 <= len(s.data); i += 4 {
		in, err := decodeA64(s.data[i:i+4], s.vaddr+uint64(i))
		if err != nil {
			return
		}
		branch := in.direct && to[in.target]
		page := in.numSets == 1 && in.sets[0].from.kind == sourceConstant && pages[in.sets[0].from.offset]
		if branch || page {
			found(in.address)
		}
	}
}

func sortedSpans(set map[span]bool) []span {
	list := make([]span, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	return list
}
