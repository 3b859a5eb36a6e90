package provider

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table is written once with -update and then reviewed against the
// disassembly and the symbols of the static libraries.
var update = flag.Bool("update", false, "write testdata/offsets.json from what is found")

const offsetsFile = "testdata/offsets.json"

// pinned is one line of testdata/packages.list.
type pinned struct{ suite, arch, name, version, sum string }

func (p pinned) file() string { return fmt.Sprintf("%s_%s_%s.deb", p.name, p.version, p.arch) }

// ofProviders reports whether the package holds libibverbs or the providers.
func (p pinned) ofProviders() bool { return p.name == "libibverbs1" || p.name == "ibverbs-providers" }

// ofTables reports whether all providers of the package are in the tables:
// those of Debian 12 and newer.
func (p pinned) ofTables() bool { return p.ofProviders() && p.suite != "bullseye" }

func pinnedPackages(t *testing.T) []pinned {
	t.Helper()
	file, err := os.Open("testdata/packages.list")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var list []pinned
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 5 && f[0] != "#" {
			list = append(list, pinned{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	require.NotEmpty(t, list)
	return list
}

// packageCache is where testdata/fetch.sh puts the packages.
func packageCache(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("RDMARADAR_CACHE")
	if cache == "" {
		cache = filepath.Join("..", "..", "out", "cache")
	}
	cache = filepath.Join(cache, "debs")
	if _, err := os.Stat(cache); err != nil {
		t.Skipf("no Debian packages in %s: run internal/provider/testdata/fetch.sh", cache)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb on this machine to unpack Debian packages with")
	}
	return cache
}

// unpack unpacks the packages of one suite and architecture into a directory.
func unpack(t *testing.T, cache string, packages []pinned) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range packages {
		content, err := os.ReadFile(filepath.Join(cache, p.file()))
		if err != nil && p.suite != "bookworm" {
			t.Skipf("%s is not in %s; Debian's archive may have moved on from this version: %v", p.file(), cache, err)
		}
		require.NoErrorf(t, err, "the packages of bookworm are required: run internal/provider/testdata/fetch.sh")
		sum := sha256.Sum256(content)
		require.Equal(t, p.sum, hex.EncodeToString(sum[:]), p.file())
		out, err := exec.Command("dpkg-deb", "-x", filepath.Join(cache, p.file()), dir).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return dir
}

// eachRelease calls a test with every release and architecture, such as
// "44.0-2/amd64", and its unpacked packages.
func eachRelease(t *testing.T, test func(t *testing.T, release, dir string)) {
	t.Helper()
	cache := packageCache(t)
	groups := map[string][]pinned{}
	for _, p := range pinnedPackages(t) {
		if p.ofTables() {
			release := p.version + "/" + p.arch
			groups[release] = append(groups[release], p)
		}
	}
	for _, release := range sortedKeys(groups) {
		t.Run(strings.ReplaceAll(release, "/", "-"), func(t *testing.T) {
			test(t, release, unpack(t, cache, groups[release]))
		})
	}
}

// libraryRow is what the table holds of one library.
type libraryRow struct {
	Name    string   `json:"name"`
	ABI     string   `json:"abi"`
	Slots   *Slots   `json:"slots,omitempty"`
	Targets []string `json:"targets"`
	Notes   []string `json:"notes,omitempty"`
}

func rowOf(l *Library) libraryRow {
	row := libraryRow{Name: l.Name, ABI: l.ABI, Notes: l.Notes}
	for _, t := range l.Targets {
		name := t.Function.String()
		if t.Symbol != "" {
			name = t.Symbol
		}
		row.Targets = append(row.Targets, fmt.Sprintf("%s %#x entry+%d return+%d", name, t.Offset, t.EntryOffset-t.Offset, t.ReturnOffset-t.Offset))
	}
	return row
}

// sharedObjects lists the regular files that are libraries, by base name.
func sharedObjects(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && strings.Contains(info.Name(), ".so") {
			files[info.Name()] = path
		}
		return err
	})
	require.NoError(t, err)
	return files
}

func readAll(t *testing.T, path string) io.ReaderAt {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return bytes.NewReader(content)
}

// inspectTree analyses every library of an unpacked pair of packages.
func inspectTree(t *testing.T, dir string) map[string]libraryRow {
	t.Helper()
	files := sharedObjects(t, dir)
	rows := map[string]libraryRow{}
	var slots Slots
	for name, path := range files {
		if !strings.HasPrefix(name, "libibverbs.so") {
			continue
		}
		library, found, err := InspectVerbs(readAll(t, path))
		require.NoError(t, err, name)
		slots = found
		row := rowOf(library)
		row.Slots = &slots
		rows[name] = row
	}
	require.NotZero(t, slots, "no libibverbs in %s", dir)
	for name, path := range files {
		if _, done := rows[name]; done {
			continue
		}
		library, err := InspectProvider(readAll(t, path), slots)
		require.NoError(t, err, name)
		assert.Zero(t, library.Unresolved, "%s: %v", name, library.Notes)
		assertPlaces(t, path, library)
		rows[name] = rowOf(library)
	}
	return rows
}

// assertPlaces checks what must hold of any result.
func assertPlaces(t *testing.T, path string, l *Library) {
	t.Helper()
	assert.NotEmpty(t, l.Find(PostSend), path)
	assert.NotEmpty(t, l.Find(PollCQ), path)
	for _, target := range l.Targets {
		assert.LessOrEqual(t, target.Offset, target.ReturnOffset, path)
		assert.LessOrEqual(t, target.ReturnOffset, target.EntryOffset, path)
		assert.Less(t, target.EntryOffset, target.Offset+256, path)
		for _, offset := range []uint64{target.Offset, target.EntryOffset, target.ReturnOffset} {
			assert.False(t, isCall(t, path, l.Machine, offset), "%s: a probe on the call at %#x", path, offset)
		}
	}
}

// isCall reports whether the instruction at a file offset is a call. Only what
// compilers write is looked for: e8 and ff /2 after prefixes, bl and blr.
func isCall(t *testing.T, path string, machine elf.Machine, offset uint64) bool {
	t.Helper()
	code := make([]byte, 16)
	_, err := readAll(t, path).ReadAt(code, int64(offset))
	require.NoError(t, err)
	if machine == elf.EM_AARCH64 {
		w := binary.LittleEndian.Uint32(code)
		return w>>26 == 0b100101 || w&0xfffffc1f == 0xd63f0000
	}
	for slices.Contains([]byte{0x3e, 0x40, 0x41, 0x42, 0x43, 0x48, 0x66, 0xf2}, code[0]) {
		code = code[1:]
	}
	return code[0] == 0xe8 || code[0] == 0xff && code[1]>>3&7 == 2
}

// TestPackages holds every provider that Debian ships against the table.
func TestPackages(t *testing.T) {
	expected := map[string]map[string]libraryRow{}
	if content, err := os.ReadFile(offsetsFile); err == nil {
		require.NoError(t, json.Unmarshal(content, &expected))
	}
	eachRelease(t, func(t *testing.T, key, dir string) {
		rows := inspectTree(t, dir)
		if *update {
			expected[key] = rows
			return
		}
		require.Len(t, rows, len(expected[key]), "number of libraries")
		for _, name := range sortedKeys(rows) {
			assert.Equal(t, expected[key][name], rows[name], name)
		}
	})
	if *update {
		content, err := json.MarshalIndent(expected, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(offsetsFile, append(content, '\n'), 0o644))
	}
}

// TestPackagesAgree compares the table's architectures: the same source has
// the same functions, however it is compiled.
func TestPackagesAgree(t *testing.T) {
	content, err := os.ReadFile(offsetsFile)
	require.NoError(t, err)
	table := map[string]map[string]libraryRow{}
	require.NoError(t, json.Unmarshal(content, &table))
	for _, version := range []string{"44.0-2", "56.1-1", "65.0-1.1"} {
		amd64, arm64 := table[version+"/amd64"], table[version+"/arm64"]
		require.NotEmpty(t, amd64, version)
		assert.Equal(t, sortedKeys(amd64), sortedKeys(arm64), version)
		for name, row := range amd64 {
			assert.Equal(t, functionsOf(row), functionsOf(arm64[name]), "%s %s", version, name)
			assert.Equal(t, row.Slots, arm64[name].Slots, "%s %s", version, name)
			assert.Equal(t, row.Notes, arm64[name].Notes, "%s %s", version, name)
		}
	}
}

func functionsOf(row libraryRow) []string {
	var names []string
	for _, target := range row.Targets {
		name, _, _ := strings.Cut(target, " ")
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// TestStaticLibraries takes the symbols of Debian's static libraries as the
// truth. Each is linked into a shared library, once with its symbols and once
// stripped; the names must be those of the functions, and both must agree.
func TestStaticLibraries(t *testing.T) {
	cache := packageCache(t)
	for _, tool := range []string{"gcc", "objcopy", "strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on this machine to link static libraries with", tool)
		}
	}
	var packages []pinned
	for _, p := range pinnedPackages(t) {
		if p.suite == "bookworm" && p.arch == "amd64" {
			packages = append(packages, p)
		}
	}
	dir := unpack(t, cache, packages)
	var slots Slots
	for name, path := range sharedObjects(t, dir) {
		if strings.HasPrefix(name, "libibverbs.so") {
			_, found, err := InspectVerbs(readAll(t, path))
			require.NoError(t, err)
			slots = found
		}
	}
	archives, err := filepath.Glob(filepath.Join(dir, "usr/lib/*/lib*.a"))
	require.NoError(t, err)
	archives = append(archives, mustGlob(t, filepath.Join(dir, "usr/lib/*/libibverbs/lib*.a"))...)
	checked := 0
	for _, archive := range archives {
		name := filepath.Base(archive)
		if strings.HasPrefix(name, "libibverbs") || strings.HasPrefix(name, "librdmacm") {
			continue
		}
		checked++
		t.Run(name, func(t *testing.T) {
			withSymbols, stripped := linkStatic(t, archive)
			library, err := InspectProvider(readAll(t, withSymbols), slots)
			require.NoError(t, err)
			bare, err := InspectProvider(readAll(t, stripped), slots)
			require.NoError(t, err)
			require.Len(t, bare.Targets, len(library.Targets))
			for i, target := range library.Targets {
				assert.Regexp(t, nameOf(target.Function), target.Symbol)
				assert.Equal(t, target.Offset, bare.Targets[i].Offset, target.Symbol)
				assert.Empty(t, bare.Targets[i].Symbol)
			}
			assert.Zero(t, library.Unresolved, library.Notes)
			assertRestored(t, withSymbols, library)
			assertDrivers(t, stripped, library)
		})
	}
	assert.GreaterOrEqual(t, checked, 15, "static libraries in the package")
}

// assertDrivers checks that the functions that objects of a driver have together are
// taken for those of one, see Finder.Linked, as they stand in the file.
func assertDrivers(t *testing.T, path string, library *Library) {
	t.Helper()
	img, err := openImage(readAll(t, path))
	require.NoError(t, err)
	_, a, err := img.classify()
	require.NoError(t, err)
	require.NoError(t, a.prepare())
	offsets := map[string]uint64{}
	for _, target := range library.Targets {
		offsets[target.Symbol] = target.Offset
	}
	for _, send := range library.Find(PostSend) {
		device := strings.TrimSuffix(send.Symbol, "post_send")
		for _, poll := range library.Find(PollCQ) {
			told := map[uint64]Function{send.Offset: PostSend, poll.Offset: PollCQ}
			for function, verb := range map[Function]string{PostRecv: "post_rec", PostSRQRecv: "post_srq_rec"} {
				for _, end := range []string{"v", "eive"} {
					if offset, ok := offsets[device+verb+end]; ok {
						told[offset] = function
					}
				}
			}
			addresses, left, err := a.driverAt(told)
			require.NoError(t, err, "%s and %s", send.Symbol, poll.Symbol)
			assert.Len(t, addresses, len(told)-len(left))
			assert.GreaterOrEqual(t, len(addresses), 3)
		}
	}
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	matches, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return matches
}

// nameOf is how rdma-core names the functions.
func nameOf(f Function) *regexp.Regexp {
	return map[Function]*regexp.Regexp{
		PostSend:    regexp.MustCompile(`^[a-z0-9_]+_u?post_send$`),
		PostRecv:    regexp.MustCompile(`^[a-z0-9_]+_u?post_(recv|receive)$`),
		PostSRQRecv: regexp.MustCompile(`^[a-z0-9_]+_post_srq_(recv|receive)$`),
		PollCQ:      regexp.MustCompile(`^[a-z0-9_]+_u?poll_cq(_v1)?$`),
	}[f]
}

// linkStatic links an archive of rdma-core into a shared library that imports
// verbs_set_ops as the provider does.
func linkStatic(t *testing.T, archive string) (withSymbols, stripped string) {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, arguments ...string) {
		out, err := exec.Command(name, arguments...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	// The objects are not compiled for a shared library: what they take from
	// outside by address must be inside.
	source := filepath.Join(dir, "outside.c")
	outside := "#define H __attribute__((visibility(\"hidden\")))\nH void *stderr; H int rdmacore44_0_verbs_allow_disassociate_destroy;\n"
	require.NoError(t, os.WriteFile(source, []byte(outside), 0o644))
	renamed := filepath.Join(dir, "renamed.a")
	withSymbols, stripped = filepath.Join(dir, "symbols.so"), filepath.Join(dir, "stripped.so")
	run("objcopy", "--redefine-sym", "rdmacore44_0_verbs_set_ops=verbs_set_ops", archive, renamed)
	run("gcc", "-shared", "-o", withSymbols, source, "-Wl,-Bsymbolic", "-Wl,--whole-archive", renamed,
		"-Wl,--no-whole-archive", "-Wl,--unresolved-symbols=ignore-all")
	run("strip", "-o", stripped, withSymbols)
	return withSymbols, stripped
}
