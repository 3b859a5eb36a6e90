package provider

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
)

// digest is the SHA-256 of the executable segments, in the order of the
// program headers. It needs load.
func (img *image) digest() [32]byte {
	hash := sha256.New()
	for i := range img.loads {
		if img.loads[i].flags&elf.PF_X != 0 {
			hash.Write(img.loads[i].data)
		}
	}
	return [32]byte(hash.Sum(nil))
}

// fingerprint is the SHA-256 of everything the analysis of a stripped file
// looks at. The digest of the code alone would let a forged file, the same
// code with other relocations, put wrong offsets into the cache for the
// genuine one.
func (img *image) fingerprint() [32]byte {
	hash := sha256.New()
	put := func(values ...uint64) {
		for _, v := range values {
			hash.Write(binary.LittleEndian.AppendUint64(nil, v))
		}
	}
	put(uint64(img.machine), uint64(len(img.loads)), uint64(len(img.relro)), img.dynamic.start, img.dynamic.end, img.frames.start, img.frames.end)
	for _, r := range img.relro {
		put(r.start, r.end)
	}
	for i := range img.loads {
		s := &img.loads[i]
		put(s.vaddr, s.offset, s.filesz, s.memsz, uint64(s.flags), uint64(len(s.data)))
		hash.Write(s.data)
	}
	return [32]byte(hash.Sum(nil))
}
