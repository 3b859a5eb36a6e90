package provider

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileUnderTest is what a stored analysis is held against.
func fileUnderTest(t testing.TB, file []byte) (*analysis, analysisKey) {
	t.Helper()
	img, err := openImage(bytes.NewReader(file))
	require.NoError(t, err)
	_, a, err := img.classify()
	require.NoError(t, err)
	return a, analysisKey{img.fingerprint(), smallSlots()}
}

// storedOf analyses a file and returns what is written of it.
func storedOf(t testing.TB, file []byte) (*Library, []byte) {
	t.Helper()
	a, key := fileUnderTest(t, file)
	library, err := a.inspectProvider(key.slots)
	require.NoError(t, err)
	c, said := newCache(t, t.TempDir())
	c.save(key, library)
	require.Empty(t, said.said)
	content := c.read(analysisFile(library.Digest))
	require.NotEmpty(t, content)
	return library, content
}

func TestStoredAnalysis(t *testing.T) {
	for _, file := range [][]byte{testSiteProvider(t), testSiteProviderA64(t)} {
		library, content := storedOf(t, file)
		sites := 0
		for _, set := range library.Sites {
			sites += len(set.Sites)
		}
		assert.GreaterOrEqual(t, sites, 2)
		a, key := fileUnderTest(t, file)
		restored, err := a.restore(content, library.Digest, key)
		require.NoError(t, err)
		assert.Equal(t, library, restored)
	}
}

// changeStored changes a stored analysis as JSON.
func changeStored(t testing.TB, content []byte, change func(stored, library map[string]any)) []byte {
	t.Helper()
	var stored map[string]any
	require.NoError(t, json.Unmarshal(content, &stored))
	library, _ := stored["Library"].(map[string]any)
	change(stored, library)
	changed, err := json.Marshal(stored)
	require.NoError(t, err)
	return changed
}

// pollSet is the set of sites of poll_cq, the second one.
func pollSet(library map[string]any) map[string]any {
	return library["Sites"].([]any)[len(library["Sites"].([]any))-1].(map[string]any)
}

func pollSite(library map[string]any) map[string]any {
	return pollSet(library)["Sites"].([]any)[0].(map[string]any)
}

func firstTarget(library map[string]any) map[string]any {
	return library["Targets"].([]any)[0].(map[string]any)
}

// TestForgedAnalysis: whatever a file says, a probe stands at the start of an
// instruction of the kind that is expected, or nowhere.
func TestForgedAnalysis(t *testing.T) {
	file := testSiteProvider(t)
	library, content := storedOf(t, file)
	add := func(m map[string]any, key string, n float64) { m[key] = m[key].(float64) + n }
	tests := map[string]struct {
		change func(stored, library map[string]any)
		want   string
	}{
		"a site within an instruction":  {func(_, l map[string]any) { add(pollSite(l), "Offset", 1) }, "no instruction is known to begin"},
		"a site in the data":            {func(_, l map[string]any) { pollSite(l)["Offset"] = testDataAt + 8 }, "not in an executable segment"},
		"a site in no function":         {func(_, l map[string]any) { pollSite(l)["Offset"] = 0x800 }, "no instruction is known to begin"},
		"a site beyond the file":        {func(_, l map[string]any) { pollSite(l)["Offset"] = 1 << 40 }, "not in an executable segment"},
		"a site at another instruction": {func(_, l map[string]any) { pollSite(l)["Offset"] = pollSet(l)["FunctionOffset"] }, "is another one"},
		"a call that is none":           {func(_, l map[string]any) { pollSite(l)["IsCall"] = true }, "is another one"},
		"a site of another function":    {func(_, l map[string]any) { pollSite(l)["Function"] = "post_send" }, "is another one"},
		"an alternative to no call":     {func(_, l map[string]any) { pollSite(l)["Instead"] = pollSet(l)["Sites"].([]any)[1] }, "an alternative"},
		"sites twice":                   {func(_, l map[string]any) { pollSet(l)["Sites"].([]any)[1] = pollSite(l) }, "out of order"},
		"register 16": {func(_, l map[string]any) {
			pollSite(l)["WC"].(map[string]any)["Base"].(map[string]any)["Register"] = 16
		}, "does not exist"},
		"a place of no kind": {func(_, l map[string]any) {
			pollSite(l)["WC"].(map[string]any)["Base"].(map[string]any)["Kind"] = "port"
		}, `"port" is no name`},
		"a member beyond the completion": {func(_, l map[string]any) { pollSite(l)["Overrides"] = []any{map[string]any{"Offset": 44, "Size": 8}} }, "does not exist"},
		"full without sites":             {func(_, l map[string]any) { pollSet(l)["Sites"] = nil }, "0 sites"},
		"sites of no function":           {func(_, l map[string]any) { add(pollSet(l), "FunctionOffset", 16) }, "which is no function"},
		"a reason with an escape":        {func(_, l map[string]any) { pollSet(l)["Shared"] = "\x1b[2J" }, "no sentence"},
		"a function within another":      {func(_, l map[string]any) { add(firstTarget(l), "Offset", 3) }, "begin"},
		"a probe elsewhere on entry":     {func(_, l map[string]any) { add(firstTarget(l), "EntryOffset", 1) }, "is right"},
		"a probe elsewhere on return":    {func(_, l map[string]any) { add(firstTarget(l), "ReturnOffset", 3) }, "is right"},
		"a function of no name":          {func(_, l map[string]any) { firstTarget(l)["Function"] = "ioctl" }, `"ioctl" is no name`},
		"libibverbs":                     {func(_, l map[string]any) { l["Kind"] = "verbs" }, "it is of a verbs"},
		"another processor":              {func(_, l map[string]any) { l["Machine"] = int(elf.EM_AARCH64) }, "it is of a provider"},
		"another interface":              {func(_, l map[string]any) { l["ABI"] = "IBVERBS_PRIVATE_1" }, "it is of a provider"},
		"a name with a line feed":        {func(_, l map[string]any) { l["Name"] = "mlx5\nx" }, "it is of a provider"},
		"no library":                     {func(s, _ map[string]any) { s["Library"] = nil }, "no library"},
		"another code":                   {func(s, _ map[string]any) { s["Digest"] = strings.Repeat("0", 64) }, "it is of the code"},
		"half a digest":                  {func(s, _ map[string]any) { s["Digest"] = "00" }, "SHA-256"},
		"a member of tomorrow":           {func(s, _ map[string]any) { s["Tomorrow"] = 1 }, "unknown field"},
		"another version":                {func(s, _ map[string]any) { s["Version"] = analyserVersion + 1; s["Tomorrow"] = 1 }, errOther.Error()},
		"other tables":                   {func(s, _ map[string]any) { s["Fingerprint"] = strings.Repeat("0", 64) }, errOther.Error()},
		"another layout":                 {func(s, _ map[string]any) { s["Slots"].(map[string]any)["PollCQ"] = 9 }, errOther.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, key := fileUnderTest(t, file)
			forged := changeStored(t, content, test.change)
			require.NotEqual(t, string(content), string(forged))
			restored, err := a.restore(forged, library.Digest, key)
			require.ErrorContains(t, err, test.want)
			assert.Nil(t, restored)
		})
	}
	for name, forged := range map[string][]byte{
		"nothing": {}, "no JSON": []byte("\x7fELF"), "cut off": content[:len(content)/2], "two": append(bytes.Clone(content), content...),
	} {
		t.Run(name, func(t *testing.T) {
			a, key := fileUnderTest(t, file)
			_, err := a.restore(forged, library.Digest, key)
			require.Error(t, err)
			require.NotErrorIs(t, err, errOther)
		})
	}
}

// TestFinderRestores: the second finder analyses nothing; a cache that is
// damaged is said and made again.
func TestFinderRestores(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": testVerbs(), "p.so": testSiteProvider(t)})
	r.process(10, root, r.maps(filepath.Join(root, "p.so"), "/p.so"), r.maps(filepath.Join(root, "v.so"), "/v.so"))
	dir := t.TempDir()
	look := func() (*Library, Counters, []string) {
		c, said := newCache(t, dir)
		f := r.finder().WithCache(c)
		found, err := f.Process(10)
		require.NoError(t, err)
		require.Len(t, found, 2)
		return found[0].Library, f.Counters(), said.said
	}
	first, counters, said := look()
	assert.EqualValues(t, 1, counters.Analysed)
	assert.Zero(t, counters.Restored)
	assert.Empty(t, said)

	second, counters, said := look()
	assert.Equal(t, first, second)
	assert.Zero(t, counters.Analysed)
	assert.EqualValues(t, 1, counters.Restored)
	assert.Empty(t, said)

	path := filepath.Join(dir, analysisFile(first.Digest))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content[:100], 0o600))
	third, counters, said := look()
	assert.Equal(t, first, third)
	assert.EqualValues(t, 1, counters.Analysed)
	require.Len(t, said, 1)
	assert.Contains(t, said[0], path)

	_, counters, said = look()
	assert.EqualValues(t, 1, counters.Restored, "it was made again")
	assert.Empty(t, said)
}

// TestPackagesRestored: what is restored of every packaged provider is what was
// analysed.
func TestPackagesRestored(t *testing.T) {
	eachRelease(t, func(t *testing.T, _ string, dir string) {
		libraries, paths := inspectProviders(t, dir)
		for _, name := range sortedKeys(libraries) {
			assertRestored(t, paths[name], libraries[name])
		}
	})
}

// assertRestored writes an analysis and reads it back. It is small.
func assertRestored(t *testing.T, path string, library *Library) {
	t.Helper()
	img, err := openImage(readAll(t, path))
	require.NoError(t, err)
	_, a, err := img.classify()
	require.NoError(t, err)
	key := analysisKey{fingerprint: img.fingerprint()}
	c, said := newCache(t, t.TempDir())
	c.save(key, library)
	assert.Less(t, len(c.read(analysisFile(library.Digest))), 6<<10, path)
	assert.Equal(t, library, c.load(a, key), path)
	assert.Empty(t, said.said, path)
}
