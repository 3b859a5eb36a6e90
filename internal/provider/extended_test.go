package provider

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readersIn lists what the small functions of a library read.
func readersIn(t *testing.T, e *Extended) []string {
	t.Helper()
	var found []string
	for _, start := range e.a.frames.starts {
		offset, ok := e.a.img.fileOffset(start)
		if !ok {
			continue
		}
		if reader, ok := e.Reader(offset); ok {
			found = append(found, reader.text())
		}
	}
	return found
}

func (r Reader) text() string {
	order := ""
	if r.Swap {
		order = " big-endian"
	}
	return fmt.Sprintf("%v %d bytes%s >>%d &%#x", r.Offsets, r.Size, order, r.Shift, r.Mask)
}

// The functions that read the number of the queue pair of a completion, by the
// sources of rdma-core: a pointer to the completion in the CQ, and where in it.
func TestReadersOfPackages(t *testing.T) {
	cache := packageCache(t)
	wanted := map[string]struct{ suffix, why string }{
		"libmlx5": {" 56] 4 bytes big-endian >>0 &0xffffff", "cqe64->sop_drop_qpn"},
		"librxe":  {" 28] 4 bytes >>0 &0xffffffff", "wc->qp_num"},
		"libefa":  {" 4] 2 bytes >>0 &0xffff", "cur_cqe->qp_num"},
		"libmlx4": {" 0] 4 bytes big-endian >>0 &0xffffff", "cqe->vlan_my_qpn"},
	}
	for _, version := range []string{"44.0-2", "56.1-1", "65.0-1.1"} {
		t.Run(version, func(t *testing.T) {
			files := sharedObjects(t, unpack(t, cache, packagesOf(t, version, "amd64")))
			for library, want := range wanted {
				e := openNamed(t, files, library)
				readers := readersIn(t, e)
				assert.True(t, slices.ContainsFunc(readers, func(text string) bool { return strings.HasSuffix(text, want.suffix) }),
					"%s has no function that reads %s: %v", library, want.why, readers)
			}
		})
	}
}

func packagesOf(t *testing.T, version, arch string) []pinned {
	t.Helper()
	var list []pinned
	for _, p := range pinnedPackages(t) {
		if p.version == version && p.arch == arch && p.name != "libibverbs-dev" {
			list = append(list, p)
		}
	}
	return list
}

func openNamed(t *testing.T, files map[string]string, prefix string) *Extended {
	t.Helper()
	for name, path := range files {
		if strings.HasPrefix(name, prefix+"-rdmav") || strings.HasPrefix(name, prefix+".so") {
			e, err := OpenExtended(readAll(t, path))
			require.NoError(t, err, name)
			return e
		}
	}
	t.Fatalf("no %s", prefix)
	return nil
}

// libmlx5 has two functions for wr_complete and exchanges them as the queue
// changes its state: 8 bytes precede the public part of its object, so both
// are stored at 336.
func TestAlternativesOfMlx5(t *testing.T) {
	cache := packageCache(t)
	for _, version := range []string{"44.0-2", "56.1-1", "65.0-1.1"} {
		t.Run(version, func(t *testing.T) {
			e := openNamed(t, sharedObjects(t, unpack(t, cache, packagesOf(t, version, "amd64"))), "libmlx5")
			pair := e.a.functionStores()[8+328]
			slices.Sort(pair)
			pair = slices.Compact(pair)
			require.Len(t, pair, 2)
			for i, address := range pair {
				offset, _ := e.a.img.fileOffset(address)
				other, _ := e.a.img.fileOffset(pair[1-i])
				found := e.Alternatives(offset)
				require.Len(t, found, 1)
				assert.Equal(t, other, found[0].Offset)
			}
		})
	}
}

// Wherever a probe on entry stands, wr_set_sge's length is in its register still.
func TestEntryKeepsFourArguments(t *testing.T) {
	cache := packageCache(t)
	e := openNamed(t, sharedObjects(t, unpack(t, cache, packagesOf(t, "44.0-2", "amd64"))), "libmlx5")
	moved := 0
	for _, start := range e.a.frames.starts {
		offset, ok := e.a.img.fileOffset(start)
		if !ok {
			continue
		}
		target, err := e.Locate(offset)
		bounds, _ := e.a.frames.function(start)
		f, err2 := e.a.decodeFunction(bounds)
		if err != nil || err2 != nil {
			continue
		}
		entry := start + target.EntryOffset - target.Offset
		for i := range f.instructions {
			in := &f.instructions[i]
			if in.address >= entry {
				break
			}
			moved++
			for _, r := range []register{rdi, rsi, rdx, rcx} {
				require.False(t, in.writes(r), "function at %#x: register %d is written before the probe at %#x", start, r, entry)
			}
		}
	}
	assert.Positive(t, moved, "no probe stands behind the first instruction")
}

// simulated opens the simulated provider that make verbsim built.
func simulated(t *testing.T) *Extended {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "bin", "libverbsim-rdmav34.so"))
	if err != nil {
		t.Skipf("no simulated provider: run make verbsim: %v", err)
	}
	e, err := OpenExtended(bytes.NewReader(content))
	require.NoError(t, err)
	return e
}

// Only where a function begins may a probe stand, whatever a process claims.
func TestLocateRefuses(t *testing.T) {
	e := simulated(t)
	begin := map[uint64]bool{}
	for _, start := range e.a.frames.starts {
		if offset, ok := e.a.img.fileOffset(start); ok && e.a.isFunction(start) {
			begin[offset] = true
		}
	}
	require.NotEmpty(t, begin)
	accepted := 0
	for offset := range uint64(64 << 10) {
		target, err := e.Locate(offset)
		if err == nil {
			accepted++
			assert.True(t, begin[offset], "%#x", offset)
			assert.Equal(t, offset, target.Offset)
			continue
		}
		if !begin[offset] {
			require.ErrorIs(t, err, ErrUnresolved)
		}
		_, ok := e.Reader(offset)
		require.False(t, ok && !begin[offset], "%#x", offset)
	}
	assert.Positive(t, accepted)
	for _, offset := range []uint64{1 << 30, 1 << 62, ^uint64(0)} {
		_, err := e.Locate(offset)
		assert.ErrorIs(t, err, ErrUnresolved)
		assert.Empty(t, e.Alternatives(offset))
	}
}

func TestOpenExtendedRefuses(t *testing.T) {
	_, err := OpenExtended(strings.NewReader("no library"))
	assert.Truef(t, errors.Is(err, ErrNotELF) || errors.Is(err, ErrNotVerbs), "%v", err)
}

func TestReaderOfCode(t *testing.T) {
	const ret = "\xc3"
	tests := []struct {
		name, code, want string
	}{
		{"rxe", "\xf3\x0f\x1e\xfa\x48\x8b\x87\x40\x01\x00\x00\x8b\x40\x1c" + ret, "[320 28] 4 bytes >>0 &0xffffffff"},
		{"mlx5", "\x48\x8b\x87\x10\x02\x00\x00\x8b\x40\x38\x0f\xc8\x25\xff\xff\xff\x00" + ret, "[528 56] 4 bytes big-endian >>0 &0xffffff"},
		{"byte and shift", "\x48\x8b\x07\x0f\xb6\x40\x3f\xc1\xe8\x04" + ret, "[0 63] 1 bytes >>4 &0xf"},
		{"swapped half", "\x0f\xb7\x47\x10\x66\xc1\xc0\x08\x0f\xb7\xc0" + ret, "[16] 2 bytes big-endian >>0 &0xffff"},
		{"pointer sum", "\x48\x83\xc7\x08\x8b\x07" + ret, "[8] 4 bytes >>0 &0xffffffff"},
		{"constant", "\x31\xc0" + ret, ""},
		{"the argument", "\x48\x89\xf8" + ret, ""},
		{"another register", "\x8b\x06" + ret, ""},
		{"index", "\x8b\x04\x37" + ret, ""},
		{"branch", "\x8b\x07\x74\x00" + ret, ""},
		{"call", "\x8b\x07\xe8\x00\x00\x00\x00" + ret, ""},
		{"swap after mask", "\x8b\x07\x25\xff\x00\x00\x00\x0f\xc8" + ret, ""},
		{"five pointers", strings.Repeat("\x48\x8b\x3f", 4) + "\x8b\x07" + ret, ""},
		{"no end", strings.Repeat("\x48\x8b\x07", 40), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := readCode([]byte(tt.code))
			if !ok {
				got = Reader{}
			}
			text := ""
			if ok {
				text = got.text()
			}
			assert.Equal(t, tt.want, text)
		})
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\x48\x8b\x87\x10\x02\x00\x00\x8b\x40\x38\x0f\xc8\x25\xff\xff\xff\x00\xc3"))
	f.Fuzz(func(t *testing.T, code []byte) {
		r, ok := readCode(code)
		if ok && (len(r.Offsets) == 0 || len(r.Offsets) > maxReaderSteps || r.Size < 1 || r.Size > 8 || r.Shift < 0 || r.Shift > 63) {
			t.Errorf("%+v", r)
		}
	})
}

func TestDirectionOf(t *testing.T) {
	d, ok := DirectionOf("mlx5", Reader{Offsets: []int32{528, 56}, Size: 4, Swap: true, Mask: 0xffffff})
	require.True(t, ok)
	assert.Equal(t, "[528 63] 1 bytes >>4 &0xf", d.text())
	for op, receives := range map[int]bool{0: false, 13: false, 1: true, 2: true, 3: true, 4: true, 14: true} {
		assert.Equal(t, receives, d.Receives>>op&1 == 1, op)
		assert.Equal(t, !receives, d.Sends>>op&1 == 1, op)
	}
	d, ok = DirectionOf("efa", Reader{Offsets: []int32{368, 4}})
	require.True(t, ok)
	assert.Equal(t, "[368 3] 1 bytes >>1 &0x3", d.text())
	for _, other := range []Reader{{}, {Offsets: []int32{56}}, {Offsets: []int32{528, 52}}} {
		_, ok = DirectionOf("mlx5", other)
		assert.False(t, ok)
	}
	_, ok = DirectionOf("rxe", Reader{Offsets: []int32{320, 56}})
	assert.False(t, ok)
}

func TestCode(t *testing.T) {
	c := Code{Start: 0x7000, End: 0x9000, Offset: 0x1000}
	for address, offset := range map[uint64]uint64{0x7000: 0x1000, 0x8fff: 0x2fff} {
		got, ok := c.FileOffset(address)
		assert.True(t, ok)
		assert.Equal(t, offset, got)
		back, ok := c.Address(offset)
		assert.True(t, ok)
		assert.Equal(t, address, back)
	}
	for _, address := range []uint64{0, 0x6fff, 0x9000, ^uint64(0)} {
		_, ok := c.FileOffset(address)
		assert.False(t, ok)
	}
	for _, offset := range []uint64{0, 0xfff, 0x3000, ^uint64(0)} {
		_, ok := c.Address(offset)
		assert.False(t, ok)
	}
	found, err := NewFinder("").Code(os.Getpid())
	require.NoError(t, err)
	assert.NotEmpty(t, found)
	_, err = NewFinder("").Code(1 << 30)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
