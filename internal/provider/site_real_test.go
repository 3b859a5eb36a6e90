package provider

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRealRXE runs rxe_poll_cq of every packaged librxe that loads here on
// queues made by hand, with probes at its sites. No device is needed: the
// function only looks at memory that it shares with the kernel.
func TestRealRXE(t *testing.T) {
	cache := packageCache(t)
	needBPF(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc on this machine to build the driver with")
	}
	driver := filepath.Join(t.TempDir(), "rxe_driver")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", driver, "testdata/rxe_driver.c").CombinedOutput()
	require.NoError(t, err, string(out))
	groups := map[string][]pinned{}
	for _, p := range pinnedPackages(t) {
		if p.arch == "amd64" && p.name != "libibverbs-dev" {
			groups[p.version] = append(groups[p.version], p)
		}
	}
	ran := 0
	for _, version := range sortedKeys(groups) {
		t.Run(version, func(t *testing.T) {
			libraries, paths := inspectProviders(t, unpack(t, cache, groups[version]))
			for name, library := range libraries {
				if !strings.HasPrefix(name, "librxe") {
					continue
				}
				path := paths[name]
				target := library.Find(PollCQ)[0]
				set, _ := library.SitesOf(target.Offset)
				require.Equal(t, SitesFull, set.Kind, set.Reason)
				standIn(t, path)
				trial := exec.Command(driver, path, "0", "0")
				trial.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(path))
				if out, err := trial.CombinedOutput(); strings.Contains(string(out), "not found") {
					t.Skipf("%s of rdma-core %s does not load on this machine: %s (%v)", name, version, out, err)
				}
				// The code of these libraries is at the same address as in the file.
				driveSites(t, path, library, set, driver, path, fmt.Sprintf("%#x", target.Offset))
				ran++
			}
		})
	}
	assert.NotZero(t, ran, "no librxe ran")
}

// standIn builds a libibverbs beside a provider that has what the provider
// imports, in the same versions: the one that it was packaged with may need
// another C library than this machine's. poll_cq calls none of it, the
// registration of the driver does nothing.
func standIn(t *testing.T, provider string) {
	t.Helper()
	file, err := elf.Open(provider)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	imports, err := file.ImportedSymbols()
	require.NoError(t, err)
	var source strings.Builder
	versions := map[string][]string{}
	for _, s := range imports {
		if s.Library == "libibverbs.so.1" {
			fmt.Fprintf(&source, "long %s(void) { return 0; }\n", s.Name)
			versions[s.Version] = append(versions[s.Version], s.Name)
		}
	}
	var script strings.Builder
	for _, version := range sortedKeys(versions) {
		fmt.Fprintf(&script, "%s { global: %s; };\n", version, strings.Join(versions[version], "; "))
	}
	dir := t.TempDir()
	code, layout := filepath.Join(dir, "verbs.c"), filepath.Join(dir, "verbs.map")
	require.NoError(t, os.WriteFile(code, []byte(source.String()), 0o644))
	require.NoError(t, os.WriteFile(layout, []byte(script.String()), 0o644))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(filepath.Dir(provider), "libibverbs.so.1"), code,
		"-Wl,-soname,libibverbs.so.1", "-Wl,--version-script="+layout).CombinedOutput()
	require.NoError(t, err, string(out))
}
