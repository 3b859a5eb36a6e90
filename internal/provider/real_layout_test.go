package provider

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tableRows reads a table of testdata and its last comment, which names the
// columns.
func tableRows(t *testing.T, path string) (names []string, rows [][]string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if fields[0] == "#" {
			names = fields[1:]
			continue
		}
		rows = append(rows, fields)
	}
	return names, rows
}

// layoutOf returns the definitions that the queues of a provider are compiled
// with: where its private structures have their members in that release.
func layoutOf(t *testing.T, provider, release string) []string {
	t.Helper()
	names, rows := tableRows(t, "testdata/real/layouts.list")
	column := slices.Index(names, release)
	require.Positive(t, column, "testdata/real/layouts.list has no column for rdma-core %s: print it with layout.c", release)
	var definitions []string
	for _, row := range rows {
		if row[0] == provider && row[column] != "-" {
			definitions = append(definitions, "-D"+row[1]+"="+row[column])
		}
	}
	require.NotEmpty(t, definitions, "%s of rdma-core %s", provider, release)
	return definitions
}

// TestRealLayouts prints the table again from the headers of every source
// package that Debian's archive gives.
func TestRealLayouts(t *testing.T) {
	cache := packageCache(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc on this machine to compile the headers with")
	}
	_, sources := tableRows(t, "testdata/sources.list")
	confirmed := 0
	for _, row := range sources {
		version, archive := row[2], row[3]
		t.Run(version, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(cache, archive))
			if err != nil {
				t.Skipf("%s is not in %s; not every mirror has it: %v", archive, cache, err)
			}
			sum := sha256.Sum256(content)
			require.Equal(t, row[4], hex.EncodeToString(sum[:]), archive)
			tree := headersOf(t, filepath.Join(cache, archive))
			release, _, _ := strings.Cut(version, "-")
			for _, provider := range realProviders {
				if release == "33.2" && provider == "erdma" {
					continue
				}
				assert.ElementsMatch(t, layoutOf(t, provider, release), tree.layout(t, provider, release), "%s of rdma-core %s", provider, release)
			}
			confirmed++
		})
	}
	assert.NotZero(t, confirmed, "no source of rdma-core in %s: run internal/provider/testdata/fetch.sh", cache)
}

// headers is an unpacked source of rdma-core and its public headers, in the
// places where its build puts them.
type headers struct{ source, public string }

func headersOf(t *testing.T, archive string) headers {
	t.Helper()
	h := headers{t.TempDir(), t.TempDir()}
	out, err := exec.Command("tar", "-xf", archive, "-C", h.source, "--strip-components=1").CombinedOutput()
	require.NoError(t, err, string(out))
	verbs := filepath.Join(h.public, "infiniband")
	require.NoError(t, os.MkdirAll(verbs, 0o755))
	for _, pattern := range []string{"libibverbs/*.h", "providers/mlx5/mlx5*.h", "kernel-headers/rdma/*_user_ioctl_verbs.h"} {
		for _, header := range mustGlob(t, filepath.Join(h.source, pattern)) {
			_ = os.Symlink(header, filepath.Join(verbs, filepath.Base(header)))
		}
	}
	for to, from := range map[string]string{"rdma": "kernel-headers/rdma", "ccan": "ccan", "util": "util"} {
		require.NoError(t, os.Symlink(filepath.Join(h.source, from), filepath.Join(h.public, to)))
	}
	h.write(t, "config.h", "#define HAVE_STATEMENT_EXPR 1\n#define HAVE_TYPEOF 1\n#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1\n#define SIZEOF_LONG 8\n")
	h.write(t, "valgrind/memcheck.h", "#define VALGRIND_MAKE_MEM_DEFINED(address, size)\n")
	for _, header := range mustGlob(t, filepath.Join(h.source, "kernel-headers/rdma/*.h")) {
		content, err := os.ReadFile(header)
		require.NoError(t, err)
		h.write(t, "kernel-abi/"+filepath.Base(header), anonymousStructs(string(content)))
	}
	return h
}

func (h headers) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(h.public, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

var (
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/`)
	definition = regexp.MustCompile(`(?ms)^(struct|union)\s+(\w+)\s+\{.*?^\}[^;]*;`)
)

// anonymousStructs makes of each structure in a header of the kernel a macro
// _STRUCT_NAME with the structure without its name. The build of rdma-core
// makes such headers for its providers.
func anonymousStructs(header string) string {
	var macros strings.Builder
	for _, m := range definition.FindAllStringSubmatch(comment.ReplaceAllString(header, ""), -1) {
		body := strings.TrimSuffix(m[0], ";")
		_, body, _ = strings.Cut(body, "{")
		fmt.Fprintf(&macros, "#define _STRUCT_%s %s {%s\n", m[2], m[1], strings.ReplaceAll(body, "\n", " \\\n"))
	}
	return macros.String()
}

// layout prints the table's column for one provider, as definitions.
func (h headers) layout(t *testing.T, provider, release string) []string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "layout")
	major, _, _ := strings.Cut(release, ".")
	out, err := exec.Command("gcc", "-w", "-D_GNU_SOURCE", "-include", "config.h", "-D"+strings.ToUpper(provider), "-DRELEASE="+major,
		"-I"+h.public, "-I"+filepath.Join(h.source, "providers", provider), "-o", binary, "testdata/real/layout.c").CombinedOutput()
	require.NoError(t, err, string(out))
	printed, err := exec.Command(binary).Output()
	require.NoError(t, err)
	var definitions []string
	for line := range strings.Lines(string(printed)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		definitions = append(definitions, "-D"+name+"="+value)
	}
	return definitions
}
