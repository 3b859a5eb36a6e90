package provider

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Files that any user can map, made to cost memory: every symbol has the longest
// name that is read, and all share it.

var longName = strings.Repeat("n", 255)

// allocated is how many bytes f allocates, those freed meanwhile included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// withSymtab appends a .symtab and its strings to a file without sections.
func withSymtab(file []byte, symbols []elf.Sym64, names string) []byte {
	le := binary.LittleEndian
	file = bytes.Clone(file)
	table := elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: uint64(len(file)), Size: uint64(len(symbols)) * elf.Sym64Size, Link: 1}
	body := make([]byte, table.Size)
	for i := range symbols {
		if _, err := binary.Encode(body[i*elf.Sym64Size:], le, &symbols[i]); err != nil {
			panic(err)
		}
	}
	text := elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: table.Off + table.Size, Size: uint64(len(names))}
	file = append(append(file, body...), names...)
	le.PutUint64(file[40:], uint64(len(file)))
	le.PutUint16(file[60:], 2)
	for _, section := range []elf.Section64{table, text} {
		header, err := binary.Append(nil, le, &section)
		if err != nil {
			panic(err)
		}
		file = append(file, header...)
	}
	return file
}

func TestForgedSymtab(t *testing.T) {
	genuine, err := InspectProvider(bytes.NewReader(testProvider()), smallSlots())
	require.NoError(t, err)
	send := genuine.Find(PostSend)[0]
	symbol := elf.Sym64{Name: 1, Info: byte(elf.STT_FUNC), Value: send.Offset}
	table := make([]elf.Sym64, maxLoaded/elf.Sym64Size)
	for i := range table {
		table[i] = symbol
	}
	file := withSymtab(testProvider(), table, "\x00"+longName+"\x00")
	bytesAllocated := allocated(func() {
		_, err = InspectProvider(bytes.NewReader(file), smallSlots())
	})
	require.ErrorIs(t, err, ErrSymbolMismatch, "the other functions have no name")
	assert.Less(t, bytesAllocated, uint64(2<<20), "for %d names of %d bytes", len(table), len(longName))
}

// TestSymtabNamesTargets: the names that count are found among others.
func TestSymtabNamesTargets(t *testing.T) {
	genuine, err := InspectProvider(bytes.NewReader(testProvider()), smallSlots())
	require.NoError(t, err)
	names, symbols := "\x00", []elf.Sym64{{}}
	add := func(name string, offset uint64) {
		symbols = append(symbols, elf.Sym64{Name: uint32(len(names)), Info: byte(elf.STT_FUNC), Value: offset})
		names += name + "\x00"
	}
	add("frob", testCode+1)
	for _, target := range genuine.Targets {
		add(fmt.Sprintf("x_%s", target.Function), target.Offset)
	}
	library, err := InspectProvider(bytes.NewReader(withSymtab(testProvider(), symbols, names)), smallSlots())
	require.NoError(t, err)
	for _, target := range library.Targets {
		assert.Equal(t, fmt.Sprintf("x_%s", target.Function), target.Symbol)
	}

	add("x_poll_cq", 0)
	for i := range symbols {
		symbols[i].Name = symbols[len(symbols)-1].Name
	}
	_, err = InspectProvider(bytes.NewReader(withSymtab(testProvider(), symbols, names)), smallSlots())
	require.ErrorIs(t, err, ErrSymbolMismatch, "every function is called poll_cq")
}

// withDynamicSymbols moves the dynamic symbols of testProvider into a segment of
// their own and adds others there, each with the same long name.
func withDynamicSymbols(file []byte, count int) []byte {
	const address = 0x100000
	le := binary.LittleEndian
	file = bytes.Clone(file)
	img, err := openImage(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	d, err := img.readDynamic()
	if err != nil {
		panic(err)
	}
	oldStrings := file[d.values[elf.DT_STRTAB]:][:d.values[elf.DT_STRSZ]]
	oldCount := int(le.Uint32(file[d.values[elf.DT_HASH]+4:]))

	segment := bytes.Clone(file[d.values[elf.DT_SYMTAB]:][:oldCount*elf.Sym64Size])
	for range count - oldCount {
		segment = le.AppendUint32(segment, uint32(len(oldStrings)))
		segment = append(segment, make([]byte, elf.Sym64Size-4)...)
	}
	stringsAt := len(segment)
	segment = append(append(append(segment, oldStrings...), longName...), 0)
	hashAt := len(segment)
	segment = le.AppendUint32(le.AppendUint32(segment, 1), uint32(count))

	setDynamic(file, img, map[elf.DynTag]uint64{
		elf.DT_SYMTAB: address, elf.DT_STRTAB: uint64(address + stringsAt), elf.DT_HASH: uint64(address + hashAt),
		elf.DT_STRSZ: uint64(len(oldStrings) + len(longName) + 1),
	})
	return withSegment(file, address, segment)
}

// setDynamic writes values of the dynamic section, of tags that are there.
func setDynamic(file []byte, img *image, values map[elf.DynTag]uint64) {
	le := binary.LittleEndian
	offset, _ := img.fileOffset(img.dynamic.start)
	for at := offset; le.Uint64(file[at:]) != 0; at += 16 {
		if value, ok := values[elf.DynTag(le.Uint64(file[at:]))]; ok {
			le.PutUint64(file[at+8:], value)
		}
	}
}

// withSegment appends a segment of data.
func withSegment(file []byte, address uint64, content []byte) []byte {
	const programAt, size = 64, 56
	le := binary.LittleEndian
	programs := int(le.Uint16(file[56:]))
	header := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: uint64(len(file)), Vaddr: address,
		Filesz: uint64(len(content)), Memsz: uint64(len(content)),
	}
	if _, err := binary.Encode(file[programAt+programs*size:], le, &header); err != nil {
		panic(err)
	}
	le.PutUint16(file[56:], uint16(programs+1))
	return append(file, content...)
}

func TestForgedDynamicSymbols(t *testing.T) {
	file := withDynamicSymbols(testProvider(), maxSymbols)
	var library *Library
	var err error
	bytesAllocated := allocated(func() {
		library, err = InspectProvider(bytes.NewReader(file), smallSlots())
	})
	require.NoError(t, err)
	assert.Len(t, library.Targets, 2)
	assert.Less(t, bytesAllocated, uint64(60<<20), "for %d symbols with names of %d bytes", maxSymbols, len(longName))

	_, err = InspectProvider(bytes.NewReader(withDynamicSymbols(testProvider(), maxSymbols+1)), smallSlots())
	require.ErrorIs(t, err, ErrTooLarge)
}

// withRelocations adds relocations to testProvider that write anywhere.
func withRelocations(file []byte, count int) []byte {
	const address, elsewhere, size = 0x1000000, 0x900000000, 24
	le := binary.LittleEndian
	file = bytes.Clone(file)
	img, err := openImage(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	d, err := img.readDynamic()
	if err != nil {
		panic(err)
	}
	table := bytes.Clone(file[d.values[elf.DT_RELA]:][:d.values[elf.DT_RELASZ]])
	for at := uint64(elsewhere); len(table) < count*size; at += 8 {
		table = le.AppendUint64(le.AppendUint64(le.AppendUint64(table, at), uint64(elf.R_X86_64_RELATIVE)), testCode)
	}
	setDynamic(file, img, map[elf.DynTag]uint64{elf.DT_RELA: address, elf.DT_RELASZ: uint64(len(table))})
	return withSegment(file, address, table)
}

func TestForgedRelocations(t *testing.T) {
	file := withRelocations(testProvider(), maxRelocations)
	var library *Library
	var err error
	bytesAllocated := allocated(func() {
		library, err = InspectProvider(bytes.NewReader(file), smallSlots())
	})
	require.NoError(t, err)
	assert.Len(t, library.Targets, 2)
	assert.Less(t, bytesAllocated, uint64(30<<20), "for %d relocations", maxRelocations)

	_, err = InspectProvider(bytes.NewReader(withRelocations(testProvider(), maxRelocations+1)), smallSlots())
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestForgedStringTable: a table that is said to be of any length is read no
// further than a library can have one.
func TestForgedStringTable(t *testing.T) {
	file := withDynamicSymbols(testProvider(), 100)
	img, err := openImage(bytes.NewReader(file))
	require.NoError(t, err)
	d, err := img.readDynamic()
	require.NoError(t, err)
	d.values[elf.DT_STRSZ] = 1 << 40
	endless := &counting{ReaderAt: bytes.NewReader(file)}
	img.file = endless
	found, err := img.mentions(d, "no_such_name")
	require.NoError(t, err)
	assert.False(t, found)
	assert.LessOrEqual(t, endless.read, maxStrings+64<<10)
	assert.GreaterOrEqual(t, endless.read, maxStrings)
}

// counting is a file followed by zeros without end.
type counting struct {
	io.ReaderAt
	read int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	_, _ = c.ReaderAt.ReadAt(p, at)
	c.read += len(p)
	return len(p), nil
}
