package provider

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sitesFile is written with -update, like offsetsFile, and reviewed against
// the disassembly.
const sitesFile = "testdata/sites.json"

// registerNames of x86-64, in the order of Place.
func registerName(machine elf.Machine, r uint8) string {
	if machine == elf.EM_AARCH64 {
		if register(r) == stackA64 {
			return "sp"
		}
		return fmt.Sprintf("x%d", r)
	}
	return [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}[r&15]
}

func placeText(machine elf.Machine, p Place) string {
	switch p.Kind {
	case PlaceRegister:
		return registerName(machine, p.Register)
	case PlaceMemory:
		return fmt.Sprintf("[%s%+d]", registerName(machine, p.Register), p.Offset)
	default:
		return "?"
	}
}

func locationText(machine elf.Machine, l Location) string {
	text := placeText(machine, l.Base)
	if l.Counter.Kind != PlaceNone {
		text += fmt.Sprintf("+%d*%s", l.Scale, placeText(machine, l.Counter))
	}
	if l.Add != 0 {
		text += fmt.Sprintf("%+d", l.Add)
	}
	return text
}

// siteText is how the table writes a site: offset, what the kernel does with
// it, and where everything is.
func siteText(machine elf.Machine, s *Site) string {
	text := fmt.Sprintf("%#x", s.Offset)
	switch {
	case s.IsCall:
		text += " call"
	case s.Emulated:
		text += " emulated"
	case s.LongNop:
		text += " nop"
	default:
		text += " stepped"
	}
	if s.Function != PollCQ {
		return text + " wr=" + locationText(machine, s.WR) + " qp=" + locationText(machine, s.QP)
	}
	text += " wc=" + locationText(machine, s.WC) + " cq=" + locationText(machine, s.CQ)
	if s.CQE.Known() {
		text += " cqe=" + locationText(machine, s.CQE)
	}
	for _, o := range s.Overrides {
		from := fmt.Sprint(o.Constant)
		if o.From.Kind != PlaceNone {
			from = placeText(machine, o.From)
		}
		text += fmt.Sprintf(" +%d/%d=%s", o.Offset, o.Size, from)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{!s.Complete, "incomplete"}, {!s.Proven, "inferred"}} {
		if flag.set {
			text += " " + flag.name
		}
	}
	if s.Instead != nil {
		text += " instead " + siteText(machine, s.Instead)
	}
	return text
}

func siteRows(l *Library) []string {
	var rows []string
	for _, set := range l.Sites {
		head := fmt.Sprintf("%s %#x %s", set.Function, set.FunctionOffset, set.Kind)
		if set.Reason != "" {
			head += ": " + set.Reason
		}
		if set.Shared != "" {
			head += " (shared: " + set.Shared + ")"
		}
		rows = append(rows, head)
		for _, s := range set.Sites {
			rows = append(rows, " "+siteText(l.Machine, &s))
		}
	}
	return rows
}

// inspectProviders analyses every provider of an unpacked pair of packages.
func inspectProviders(t *testing.T, dir string) (found map[string]*Library, paths map[string]string) {
	t.Helper()
	paths = sharedObjects(t, dir)
	var slots Slots
	for name, path := range paths {
		if strings.HasPrefix(name, "libibverbs.so") {
			_, layout, err := InspectVerbs(readAll(t, path))
			require.NoError(t, err)
			slots = layout
			delete(paths, name)
		}
	}
	found = map[string]*Library{}
	for name, path := range paths {
		library, err := InspectProvider(readAll(t, path), slots)
		require.NoError(t, err, name)
		found[name] = library
	}
	return found, paths
}

// TestPackageSites holds the sites of every provider that Debian ships
// against the table, and against another disassembler.
func TestPackageSites(t *testing.T) {
	expected := map[string]map[string][]string{}
	if content, err := os.ReadFile(sitesFile); err == nil {
		require.NoError(t, json.Unmarshal(content, &expected))
	}
	eachRelease(t, func(t *testing.T, key, dir string) {
		libraries, paths := inspectProviders(t, dir)
		rows := map[string][]string{}
		for name, library := range libraries {
			rows[name] = siteRows(library)
			assertSites(t, name, library)
			if strings.HasSuffix(key, "amd64") {
				assertBoundaries(t, paths[name], library)
			}
		}
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
		require.NoError(t, os.WriteFile(sitesFile, append(content, '\n'), 0o644))
	}
}

// assertSites checks what must hold of any result.
func assertSites(t *testing.T, name string, l *Library) {
	t.Helper()
	require.Len(t, l.Sites, len(l.Targets), name)
	for _, set := range l.Sites {
		assert.Equal(t, set.Kind == SitesFull, set.Reason == "", "%s %s: %s", name, set.Function, set.Reason)
		assert.Equal(t, set.Kind == SitesNone, len(set.Sites) == 0, "%s %s", name, set.Function)
		for _, s := range set.Sites {
			assert.Equal(t, set.Function, s.Function)
			assert.LessOrEqual(t, len(s.Overrides), maxOverrides)
			// That is why the tracer can refuse calls everywhere, whether user
			// shadow stacks are on or not: docs/limits.md says so.
			assert.False(t, s.IsCall, "%s: a call at %#x", name, s.Offset)
		}
	}
}

// assertBoundaries asks objdump, which sweeps from symbol to symbol, whether
// an instruction begins at every site.
func assertBoundaries(t *testing.T, path string, l *Library) {
	t.Helper()
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("no objdump on this machine to disassemble with")
	}
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	text := file.Section(".text")
	require.NotNil(t, text)
	for _, set := range l.Sites {
		from, to := set.FunctionOffset, set.FunctionOffset
		for _, s := range set.Sites {
			assert.True(t, s.Offset >= text.Offset && s.Offset < text.Offset+text.Size, "%s: %#x", path, s.Offset)
			// What the compiler split off lies elsewhere.
			if s.Offset >= from && s.Offset-from < 0x2000 {
				to = max(to, s.Offset)
			}
		}
		if to == from {
			continue
		}
		starts := instructionStarts(t, path, from-text.Offset+text.Addr, to-text.Offset+text.Addr)
		for _, s := range set.Sites {
			if s.Offset >= from && s.Offset <= to {
				assert.True(t, starts[s.Offset-text.Offset+text.Addr], "%s: %#x", filepath.Base(path), s.Offset)
			}
		}
	}
}

// instructionStarts disassembles a range with objdump.
func instructionStarts(t *testing.T, path string, from, to uint64) map[uint64]bool {
	t.Helper()
	command := exec.Command("objdump", "-d", "--no-show-raw-insn", fmt.Sprintf("--start-address=%#x", from), fmt.Sprintf("--stop-address=%#x", to+1), path)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	starts := map[uint64]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		address, _, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		if at, err := strconv.ParseUint(address, 16, 64); ok && err == nil {
			starts[at] = true
		}
	}
	require.NoError(t, command.Wait())
	return starts
}

// TestKnownSites holds the table against sites that were confirmed by running
// the functions on queues made by hand, or read in the disassembly by eye.
func TestKnownSites(t *testing.T) {
	content, err := os.ReadFile(sitesFile)
	require.NoError(t, err)
	table := map[string]map[string][]string{}
	require.NoError(t, json.Unmarshal(content, &table))
	tests := []struct{ release, library, want string }{
		{"44.0-2/amd64", "libmlx5.so.1.24.44.0", "0x1ebbd emulated wc=r13-48 cq=r12"},
		{"44.0-2/amd64", "libmlx5.so.1.24.44.0", "0x1de55 emulated wc=r15-48 cq=r12"},
		{"44.0-2/amd64", "libmlx5.so.1.24.44.0", "0x53f0b stepped wr=rbp qp="},
		{"56.1-1/amd64", "libmlx5.so.1.25.56.1", "0x1fbe3 emulated wc=r14-48 cq=r13"},
		{"56.1-1/amd64", "libmlx5.so.1.25.56.1", "0x1ff5c emulated wc=r14-48 cq=r13"},
		{"56.1-1/amd64", "libmlx5.so.1.25.56.1", "0x2008b emulated wc=r14-48 cq=r13"},
		{"56.1-1/amd64", "libmlx5.so.1.25.56.1", "0x1ed75 emulated wc=r13-48 cq=r12"},
		{"56.1-1/amd64", "libmlx5.so.1.25.56.1", "0x1f2a6 emulated wc=r13-48 cq=r12"},
		{"56.1-1/amd64", "libmlx5.so.1.25.56.1", "0x57aa5 stepped wr=r12 qp="},
		{"65.0-1.1/amd64", "libmlx5.so.1.27.65.0", "0x224b8 emulated wc=r12-48 cq=rbp"},
		{"65.0-1.1/amd64", "libmlx5.so.1.27.65.0", "0x2292d emulated wc=r12-48 cq=rbp"},
		{"65.0-1.1/amd64", "libmlx5.so.1.27.65.0", "0x22af4 emulated wc=r12-48 cq=rbp"},
		{"65.0-1.1/amd64", "libmlx5.so.1.27.65.0", "0x21429 emulated wc=r12-48 cq=rbp"},
		{"65.0-1.1/amd64", "libmlx5.so.1.27.65.0", "0x219fa emulated wc=r12-48 cq=rbp"},
		{"44.0-2/amd64", "librxe-rdmav34.so", "0x2d27 emulated wc=rbx-48 cq=r13-312"},
		{"56.1-1/amd64", "librxe-rdmav34.so", "0x2d3f emulated wc=rbx-48 cq=r13-312"},
		{"65.0-1.1/amd64", "librxe-rdmav65.so", "0x2ee7 emulated wc=rbx-48 cq=r13-312"},
		{"44.0-2/amd64", "libmlx4.so.1.0.44.0", "0x3564 emulated wc=rbp-48 cq=r12"},
		{"56.1-1/amd64", "libmlx4.so.1.0.56.1", "0x3699 emulated"},
		{"65.0-1.1/amd64", "libmlx4.so.1.0.65.0", "0x3818 emulated"},
		{"56.1-1/amd64", "libefa.so.1.3.56.1", "0x6dac emulated wc=r14-48 cq=r12"},
		{"65.0-1.1/amd64", "libefa.so.1.7.65.0", "0x8992 emulated wc=r13-48 cq=rbp"},
		{"65.0-1.1/amd64", "libhns.so.1.0.65.0", "0x835a emulated"},
		{"44.0-2/amd64", "liberdma-rdmav34.so", "0x3d4d stepped wc=rdx cq=rbx +28/4=rdi"},
		{"56.1-1/amd64", "liberdma-rdmav34.so", "0x3e12 stepped wc=rdx cq=rbx +28/4=r8"},
		{"65.0-1.1/amd64", "liberdma-rdmav65.so", "0x41d0 stepped wc=rdx cq=rbp +28/4=rsi"},
		{"44.0-2/amd64", "libirdma-rdmav34.so", "0x5e3f emulated wc=rax cq=r14"},
		{"44.0-2/amd64", "libbnxt_re-rdmav34.so", "0x3267 emulated wc=r13-48 cq=rbp"},
		{"44.0-2/amd64", "libbnxt_re-rdmav34.so", "0x2998 emulated"},
		{"56.1-1/amd64", "libbnxt_re-rdmav34.so", "0x5097 emulated"},
		{"56.1-1/amd64", "libbnxt_re-rdmav34.so", "0x3515 emulated"},
		{"65.0-1.1/amd64", "libbnxt_re-rdmav65.so", "0x56f8 emulated"},
		{"44.0-2/arm64", "libmlx5.so.1.24.44.0", "0x1bcc4 emulated wc=x24-48"},
		{"44.0-2/arm64", "librxe-rdmav34.so", "0x22f8 emulated wc=x19-48"},
	}
	for _, test := range tests {
		found := false
		for _, row := range table[test.release][test.library] {
			found = found || strings.HasPrefix(row, " "+test.want)
		}
		assert.True(t, found, "%s %s: no row %q in %q", test.release, test.library, test.want, table[test.release][test.library])
	}
}

// TestEntriesOfCQs lists the sites of libmlx5 at which the entry of the CQ is not
// known, and makes sure that it is known nowhere else: libmlx5 44.0 on arm64 has
// overwritten the only register that held it.
func TestEntriesOfCQs(t *testing.T) {
	table := map[string]map[string][]string{}
	readJSON(t, sitesFile, &table)
	known := map[string]int{}
	var missing []string
	for _, release := range sortedKeys(table) {
		for library, rows := range table[release] {
			for _, row := range rows {
				at := strings.Fields(row)[0]
				switch {
				case strings.Contains(row, " cqe="):
					require.True(t, strings.HasPrefix(library, "libmlx5."), "%s %s", release, library)
					known[release]++
				case strings.HasPrefix(library, "libmlx5.") && strings.Contains(row, " wc="):
					missing = append(missing, release+" "+at)
				}
			}
		}
	}
	assert.Equal(t, []string{"44.0-2/arm64 0x1b08c", "44.0-2/arm64 0x1bcc4"}, missing)
	assert.Equal(t, map[string]int{
		"44.0-2/amd64": 2, "56.1-1/amd64": 5, "65.0-1.1/amd64": 7, "56.1-1/arm64": 5, "65.0-1.1/arm64": 7,
	}, known)
}

// TestExceptions lists every poll_cq of which not everything is found.
func TestExceptions(t *testing.T) {
	content, err := os.ReadFile(sitesFile)
	require.NoError(t, err)
	table := map[string]map[string][]string{}
	require.NoError(t, json.Unmarshal(content, &table))
	exceptions := map[string]string{
		"44.0-2/amd64 libmana.so.1.0.44.0":   "none",
		"44.0-2/arm64 libmana.so.1.0.44.0":   "none",
		"65.0-1.1/amd64 libmana.so.1.1.65.0": "partial",
		"65.0-1.1/arm64 libmana.so.1.1.65.0": "none",
		"56.1-1/amd64 libqedr-rdmav34.so":    "counting",
	}
	seen := map[string]string{}
	for _, release := range sortedKeys(table) {
		for library, rows := range table[release] {
			for _, row := range rows {
				fields := strings.Fields(row)
				if kind := strings.TrimSuffix(fields[2], ":"); fields[0] == "poll_cq" && kind != "full" {
					seen[release+" "+library] = kind
				}
			}
		}
	}
	assert.Equal(t, exceptions, seen)
}

// TestExceptionsAreDocumented holds docs/limits.md against the table: it names
// every function whose sites are not all found, and no other.
func TestExceptionsAreDocumented(t *testing.T) {
	table := map[string]map[string][]string{}
	readJSON(t, sitesFile, &table)
	// The architectures of each exception.
	found := map[string][]string{}
	for _, release := range sortedKeys(table) {
		version, arch, _ := strings.Cut(release, "/")
		major, _, _ := strings.Cut(version, ".")
		for name, rows := range table[release] {
			driver, _, _ := strings.Cut(strings.TrimPrefix(name, "lib"), ".so")
			driver, _, _ = strings.Cut(driver, "-rdmav")
			for _, row := range rows {
				words := strings.Fields(row)
				if row[0] != ' ' && (words[2] != SitesFull.String() || strings.Contains(row, "(shared: ")) {
					exception := driver + " " + major + " " + words[0]
					found[exception] = append(found[exception], arch)
				}
			}
		}
	}
	var want []string
	for exception, archs := range found {
		if len(archs) == 1 {
			words := strings.Fields(exception)
			exception = words[0] + " " + words[1] + " " + archs[0] + " " + words[2]
		}
		want = append(want, exception)
	}
	assert.ElementsMatch(t, want, documentedExceptions(t))
}

// documentedExceptions reads the table in docs/limits.md.
func documentedExceptions(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../../docs/limits.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "## Functions without sites")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.ReplaceAll(line, "`", ""), "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "rdma-core |") {
			continue
		}
		for driver := range strings.SplitSeq(cells[1], ",") {
			for version := range strings.SplitSeq(cells[2], ",") {
				for function := range strings.SplitSeq(cells[3], ",") {
					documented = append(documented, strings.TrimSpace(driver)+" "+strings.TrimSpace(version)+" "+strings.TrimSpace(function))
				}
			}
		}
	}
	return documented
}
