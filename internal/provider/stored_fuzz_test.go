package provider

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// isProvenStart reports whether an instruction begins at a file offset in a sweep
// over the function that the unwind tables tell to be there.
func isProvenStart(t testing.TB, file []byte, offset uint64) bool {
	t.Helper()
	img, err := openImage(bytes.NewReader(file))
	require.NoError(t, err)
	require.NoError(t, img.load())
	frames, err := img.readFrames()
	require.NoError(t, err)
	cpu, err := processorOf(img.machine)
	require.NoError(t, err)
	address, ok := img.address(offset)
	if !ok {
		return false
	}
	bounds, ok := frames.function(address)
	if !ok {
		return false
	}
	at := bounds.start
	for at < address {
		in, err := cpu.decode(img.bytes(at, cpu.maxSize), at)
		if err != nil {
			return false
		}
		at = in.end()
	}
	return at == address
}

// FuzzCacheFile: no file in the cache makes a reader fail or names an offset
// at which no instruction of the library begins.
func FuzzCacheFile(f *testing.F) {
	files := [][]byte{testSiteProvider(f), testSiteProviderA64(f)}
	digests := make([][32]byte, len(files))
	for i, file := range files {
		library, content := storedOf(f, file)
		digests[i] = library.Digest
		f.Add(content)
		f.Add(content[:len(content)/2])
		for _, change := range []func(s, l map[string]any){
			func(_, l map[string]any) { pollSite(l)["Offset"] = pollSite(l)["Offset"].(float64) + 1 },
			func(_, l map[string]any) { firstTarget(l)["Offset"] = 0x1001 },
			func(_, l map[string]any) { l["Sites"] = nil },
			func(s, _ map[string]any) { s["Version"] = 0 },
			func(s, _ map[string]any) { s["Verdicts"] = []any{} },
		} {
			f.Add(changeStored(f, content, change))
		}
		f.Add(fmt.Appendf(nil, `{"Version":%d,"Digest":"%v","Verdicts":[{"Function":4096,"Verdict":"wrong","At":"2026-01-01T00:00:00Z"}]}`,
			analyserVersion, checksum(library.Digest)))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for i, file := range files {
			if stored, err := decodeVerdicts(content, digests[i]); err == nil && len(stored) > maxLibraryVerdicts {
				t.Fatalf("%d verdicts", len(stored))
			}
			a, key := fileUnderTest(t, file)
			restored, err := a.restore(content, digests[i], key)
			if (restored == nil) == (err == nil) {
				t.Fatalf("%v with error %v", restored, err)
			}
			if err == nil {
				checkOffsets(t, file, restored)
			}
		}
	})
}

// checkOffsets demands that every place for a probe is the start of an
// instruction.
func checkOffsets(t *testing.T, file []byte, l *Library) {
	t.Helper()
	var offsets []uint64
	for _, target := range l.Targets {
		offsets = append(offsets, target.Offset, target.EntryOffset, target.ReturnOffset)
	}
	for _, set := range l.Sites {
		for _, s := range set.Sites {
			offsets = append(offsets, s.Offset)
			if s.Instead != nil {
				offsets = append(offsets, s.Instead.Offset)
			}
		}
	}
	for _, offset := range offsets {
		if !isProvenStart(t, file, offset) {
			t.Fatalf("no instruction is proven to begin at %#x", offset)
		}
	}
}
