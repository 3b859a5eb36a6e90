package provider

import (
	"bytes"
	"debug/elf"
	"io"
	"strings"
	"testing"
)

// seedELF adds the small files, cut off and with a byte changed in every
// header field and table.
func seedELF(f *testing.F, file []byte) {
	f.Helper()
	f.Add(file)
	for _, n := range []int{15, 16, 63, 64, 120, 400, 0x210, testCode, testDataAt, len(file) - 8} {
		f.Add(file[:n])
	}
	for at := 0; at < 0x400; at += 6 {
		changed := bytes.Clone(file)
		changed[at] ^= 0xff
		f.Add(changed)
	}
	for at := testDataAt; at < len(file); at += 8 {
		changed := bytes.Clone(file)
		changed[at] ^= 0x80
		f.Add(changed)
	}
}

// FuzzInspect: any file gives a result or an error, in a bounded number of steps, and no place for a
// probe that is not the start of an instruction.
func FuzzInspect(f *testing.F) {
	seedELF(f, testVerbs())
	seedELF(f, testProvider())
	arm := bytes.Clone(testProvider())
	arm[18] = byte(elf.EM_AARCH64)
	seedELF(f, arm)
	seedELF(f, testSiteProvider(f))
	seedELF(f, testSiteProviderA64(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		r := bytes.NewReader(file)
		kind, err := Classify(r)
		if err != nil && kind != Other {
			t.Fatalf("kind %v with error %v", kind, err)
		}
		library, slots, err := InspectVerbs(r)
		checkResult(t, library, err, file)
		if err == nil && slots.Count <= slots.PostSRQRecv {
			t.Fatalf("slots %+v", slots)
		}
		for _, s := range []Slots{smallSlots(), {}, {Count: 1024, PollCQ: 53, PostRecv: 54, PostSend: 55, PostSRQRecv: 57}} {
			library, err := InspectProvider(r, s)
			checkResult(t, library, err, file)
		}
		checkEffort(t, file)
	})
}

// checkEffort: the steps of an analysis are in proportion to the file. A small one
// must not take all that the largest provider may.
func checkEffort(t *testing.T, file []byte) {
	t.Helper()
	img, err := openImage(bytes.NewReader(file))
	if err != nil {
		return
	}
	kind, a, err := img.classify()
	if err != nil {
		return
	}
	switch kind {
	case Verbs:
		_, _, _ = a.inspectVerbs()
	case Provider:
		_, _ = a.inspectProvider(smallSlots())
	default:
		return
	}
	if limit := min(10*len(file)+10_000, maxEffort); a.effort > limit {
		t.Fatalf("%d steps for a file of %d bytes, of which %d are allowed", a.effort, len(file), limit)
	}
}

func checkResult(t *testing.T, library *Library, err error, file []byte) {
	t.Helper()
	if (library == nil) == (err == nil) {
		t.Fatalf("library %v with error %v", library, err)
	}
	if err != nil {
		if !Refused(err) {
			t.Fatalf("an error without a type: %v", err)
		}
		return
	}
	checkOffsets(t, file, library)
}

func FuzzParseMaps(f *testing.F) {
	f.Add("55d0c0a01000-55d0c0a02000 r-xp 00001000 fe:00 247260                     /usr/bin/app\n")
	f.Add("7f0000002000-7f0000003000 rwxp 00000000 103:02 18446744073709551615 /a b (deleted)\n")
	f.Add("7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n")
	f.Add("0-0    \n")
	f.Add("\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := parseMaps(strings.NewReader(text), nil)
		if len(found) > strings.Count(text, "\n")+1 {
			t.Fatalf("%d mappings from %q", len(found), text)
		}
		for _, m := range found {
			if !strings.HasPrefix(m.path, "/") || m.key.inode == 0 || m.end < m.start {
				t.Fatalf("%+v from %q (%v)", m, text, err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, code := range []string{"\xf3\x0f\x1e\xfa", "\x48\x8d\x35\x10\x00\x00\x00", "\xc5\xfe\x6f\x07", "\x62\xf1\x7c\x48\x10\x00", "\x66\x2e\x0f\x1f\x84", "\xf3"} {
		f.Add([]byte(code))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		in, err := decodeX86(code, 0x1000)
		if err == nil && (in.size <= 0 || in.size > 15 || in.size > len(code)) {
			t.Fatalf("% x: %d bytes", code, in.size)
		}
		costX86(code)
		arm, err := decodeA64(code, 0x1000)
		if (err == nil) != (len(code) >= 4) || err == nil && arm.size != 4 {
			t.Fatalf("% x: %+v, %v", code, arm, err)
		}
		costA64(code)
	})
}

// TestForgedSizes: what a file claims to hold costs no more memory than the
// file is long.
func TestForgedSizes(t *testing.T) {
	file := testProvider()
	// The second segment claims 12 MiB.
	copy(file[64+56+32:], []byte{0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0})
	img, err := openImage(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := img.load(); err != nil {
		t.Fatal(err)
	}
	if n := cap(img.loads[1].data); n > 1<<20 {
		t.Errorf("%d bytes kept for a file of %d", n, len(file))
	}
}

// TestReadError: a file that cannot be read is not the same as one that is
// refused.
func TestReadError(t *testing.T) {
	file := testProvider()
	for _, readable := range []int64{64, 400, testDataAt} {
		_, err := InspectProvider(&failing{file, readable}, smallSlots())
		if err == nil || Refused(err) {
			t.Errorf("readable up to %d: %v", readable, err)
		}
	}
}

type failing struct {
	file     []byte
	readable int64
}

func (f *failing) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.readable {
		return 0, io.ErrClosedPipe
	}
	return copy(p, f.file[at:]), nil
}
