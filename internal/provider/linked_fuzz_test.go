package provider

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzInspectLinked: whatever a process tells of whatever file, there is a result
// or an error, and no place for a probe that is not the start of an instruction.
func FuzzInspectLinked(f *testing.F) {
	for _, file := range [][]byte{testVerbs(), testProvider(), testSiteProvider(f), append(testProvider(), linkedMark...)} {
		for at := range uint16(8) {
			first := uint16(testCode) + at*16
			f.Add(file, first, first+16, first+32, first+48)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, poll, send, recv, shared uint16) {
		img, err := openImage(bytes.NewReader(file))
		if err != nil {
			return
		}
		if _, err := openLinked(bytes.NewReader(file), img.machine); err != nil && !Refused(err) {
			t.Fatalf("an error without a type: %v", err)
		}
		if img.load() != nil {
			return
		}
		if table, err := img.walkFrames(); err == nil && (!slices.IsSorted(table.starts) || len(table.starts) != len(table.fdes)) {
			t.Fatalf("starts %#x, descriptions %#x", table.starts, table.fdes)
		}
		d, err := img.readDynamic()
		if err != nil {
			return
		}
		a := &analysis{img: img, dynamic: d, kept: 3}
		if a.prepare() != nil {
			return
		}
		offsets := map[uint64]Function{uint64(poll): PollCQ, uint64(send): PostSend, uint64(recv): PostRecv, uint64(shared): PostSRQRecv}
		library, _, err := a.inspectLinked(offsets, nil)
		checkResult(t, library, err, file)
	})
}

// A section of descriptions that is damaged anywhere is an error or a table, and
// takes no more memory than there is of it.
func TestWalkFramesOfDamagedFiles(t *testing.T) {
	p := compileLinked(t, true, "-static", "-no-pie")
	file, err := os.ReadFile(filepath.Join(p.root, "train"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := openImage(bytes.NewReader(file))
	if err != nil || img.load() != nil {
		t.Fatal(err)
	}
	where, ok := img.section(frameSection)
	if !ok {
		t.Fatal("a static program has no " + frameSection)
	}
	whole, err := img.walkFrames()
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(0); i < min(where.end-where.start, 4096); i += 4 {
		for _, changed := range []byte{0x00, 0x7f, 0xff} {
			b := img.bytes(where.start+i, 4)
			before := [4]byte(b)
			copy(b, []byte{changed, changed, changed, changed})
			table, err := img.walkFrames()
			if err != nil && !Refused(err) || err == nil && uint64(len(table.starts)) > (where.end-where.start)/12 {
				t.Fatalf("%#x at %d: %v", changed, i, err)
			}
			copy(b, before[:])
		}
	}
	again, err := img.walkFrames()
	if err != nil || !slices.Equal(again.starts, whole.starts) {
		t.Fatalf("the file was left changed: %v", err)
	}
}
