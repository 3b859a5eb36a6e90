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
	for _, file := range [][]byte{testVerbs(), testProvider(), testSiteProvider(f)} {
		for at := range uint16(8) {
			first := uint16(testCode) + at*16
			f.Add(file, first, first+16, first+32, first+48)
		}
	}
	file := testSiteProvider(f)
	poll, send, recv := functionsOfTable(f, file)
	f.Add(file, poll, send, recv, uint16(0))
	f.Fuzz(func(t *testing.T, file []byte, poll, send, recv, shared uint16) {
		inspectForeign(t, file, poll, send, recv, shared)
	})
}

// What a process tells truly of the file that the fuzzing begins with is found in it,
// with the sites: the fuzzing is of more than errors.
func TestInspectLinkedOfFuzzedFile(t *testing.T) {
	file := testSiteProvider(t)
	poll, send, recv := functionsOfTable(t, file)
	library := inspectForeign(t, file, poll, send, recv, 0)
	if library == nil || len(library.Targets) != 3 || len(library.Sites) == 0 {
		t.Fatalf("the functions at %#x, %#x and %#x: %+v", poll, send, recv, library)
	}
	if library := inspectForeign(t, file, send, poll, recv, 0); library != nil {
		t.Errorf("functions that are exchanged are believed: %+v", library)
	}
}

// functionsOfTable returns where in a composed file the functions of its table are.
func functionsOfTable(t testing.TB, file []byte) (poll, send, recv uint16) {
	t.Helper()
	a := foreignAnalysis(t, file)
	if a == nil {
		t.Fatal("the composed file cannot be analysed")
	}
	slots := smallSlots()
	var offsets [3]uint16
	for i, slot := range []int{slots.PollCQ, slots.PostSend, slots.PostRecv} {
		offset, ok := a.img.fileOffset(a.pointer(testData + uint64(slot)*8))
		if !ok {
			t.Fatalf("slot %d of the table leads nowhere", slot)
		}
		offsets[i] = uint16(offset)
	}
	return offsets[0], offsets[1], offsets[2]
}

// foreignAnalysis prepares the analysis of a file, nil where that is refused. The
// text that gives libibverbs away is not asked for: the composed files have none.
func foreignAnalysis(t testing.TB, file []byte) *analysis {
	t.Helper()
	img, err := openImage(bytes.NewReader(file))
	if err != nil {
		return nil
	}
	if _, err := openLinked(bytes.NewReader(file), img.machine); err != nil && !Refused(err) {
		t.Fatalf("an error without a type: %v", err)
	}
	if img.load() != nil {
		return nil
	}
	if table, err := img.walkFrames(); err == nil && (!slices.IsSorted(table.starts) || len(table.starts) != len(table.fdes)) {
		t.Fatalf("starts %#x, descriptions %#x", table.starts, table.fdes)
	}
	d, err := img.readDynamic()
	if err != nil {
		return nil
	}
	a := &analysis{img: img, dynamic: d, kept: 3}
	if a.prepare() != nil {
		return nil
	}
	return a
}

func inspectForeign(t *testing.T, file []byte, poll, send, recv, shared uint16) *Library {
	t.Helper()
	a := foreignAnalysis(t, file)
	if a == nil {
		return nil
	}
	offsets := map[uint64]Function{uint64(poll): PollCQ, uint64(send): PostSend, uint64(recv): PostRecv}
	if shared != 0 {
		offsets[uint64(shared)] = PostSRQRecv
	}
	library, _, err := a.inspectLinked(offsets, nil)
	checkResult(t, library, err, file)
	return library
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
