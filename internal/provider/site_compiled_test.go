package provider

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pollCompilers are the ways in which poll_cq functions are compiled here. The
// names are those of the subtests.
func pollCompilers() map[string]string {
	return map[string]string{
		"gcc-O1":        "gcc -O1",
		"gcc-O2":        "gcc -O2",
		"gcc-O3":        "gcc -O3",
		"gcc-Os":        "gcc -Os",
		"gcc-haswell":   "gcc -O2 -march=haswell",
		"gcc-cet-frame": "gcc -O2 -fcf-protection -fno-omit-frame-pointer",
		"gcc-no-plt":    "gcc -O3 -fno-plt -fstack-protector-strong",
		"clang-O1":      "clang-19 -O1",
		"clang-O2":      "clang-19 -O2 -fcf-protection",
		"clang-O3":      "clang-19 -O3",
		"clang-Os":      "clang-19 -Os",
		"clang-v3":      "clang-19 -O3 -march=x86-64-v3",
	}
}

// TestCompiledSites compiles functions of the shapes that providers have and
// runs them with probes at the sites that are found. Together the probes must
// fire once for each completion, in the order of delivery, and read what the
// caller gets; and never on an empty poll.
func TestCompiledSites(t *testing.T) {
	needBPF(t)
	verbs, err := os.ReadFile(installed(t)["libibverbs"].Path)
	require.NoError(t, err)
	_, slots, err := InspectVerbs(strings.NewReader(string(verbs)))
	require.NoError(t, err)
	compilers := pollCompilers()
	for _, name := range sortedKeys(compilers) {
		t.Run(name, func(t *testing.T) {
			tool, _, _ := strings.Cut(compilers[name], " ")
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("no %s on this machine", tool)
			}
			library, driver := compilePolls(t, compilers[name], slots)
			found, err := InspectProvider(readAll(t, library), slots)
			require.NoError(t, err)
			require.Len(t, found.Find(PollCQ), 7)
			for _, target := range found.Find(PollCQ) {
				set, ok := found.SitesOf(target.Offset)
				require.True(t, ok)
				t.Run(strings.TrimPrefix(target.Symbol, "poll_"), func(t *testing.T) {
					runSites(t, driver, library, found, strings.TrimPrefix(target.Symbol, "poll_"), set)
				})
			}
		})
	}
}

// compilePolls builds the functions and what calls them.
func compilePolls(t *testing.T, compiler string, slots Slots) (library, driver string) {
	t.Helper()
	dir := t.TempDir()
	library, driver = filepath.Join(dir, "libpoll.so"), filepath.Join(dir, "poll_driver")
	run := func(arguments ...string) {
		out, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	run(append(strings.Fields(compiler), "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, "testdata/poll.c",
		fmt.Sprintf("-DCOUNT=%d", slots.Count), fmt.Sprintf("-DPOLL=%d", slots.PollCQ), fmt.Sprintf("-DPOST=%d", slots.PostSend),
		"-l:libibverbs.so.1")...)
	run("gcc", "-O2", "-o", driver, "testdata/poll_driver.c", library, "-Wl,-rpath,"+dir)
	return library, driver
}

// leastKind is what must be found at least. A compiler may leave nothing to
// find: gcc makes one vector store of several members and shares what follows
// with entries that are skipped, or counts without a branch.
func leastKind(name string) SiteKind {
	switch name {
	case "skip":
		return SitesCounting
	case "turns":
		return SitesPartial
	default:
		return SitesFull
	}
}

// runSites runs one function under probes at its sites.
func runSites(t *testing.T, driver, library string, l *Library, name string, set SiteSet) {
	t.Helper()
	require.GreaterOrEqual(t, set.Kind, leastKind(name), "%s: %s", name, set.Reason)
	require.NotEmpty(t, set.Sites, set.Reason)
	driveSites(t, library, l, set, driver, name)
}

// driveSites runs a driver under probes at the sites of the function that it
// polls with.
func driveSites(t *testing.T, library string, l *Library, set SiteSet, driver ...string) {
	t.Helper()
	const empty = 100_000
	command := exec.Command(driver[0], append(driver[1:], fmt.Sprint(empty))...)
	// A stand-in for libibverbs may lie beside the provider.
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(library))
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	command.Stderr = os.Stderr
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	truth := bufio.NewReader(output)
	line, err := truth.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	probes := attachSites(t, library, command.Process.Pid, l, set.Sites)
	_, err = input.Write([]byte("\n"))
	require.NoError(t, err)
	delivered := readDelivered(t, truth)
	compareDelivered(t, delivered, probes.drain(t), set)
	_, err = input.Write([]byte("\n"))
	require.NoError(t, err)
	require.Zero(t, len(readDelivered(t, truth)))
	require.Zero(t, len(probes.drain(t)), "hits in %d empty polls", empty)
	t.Logf("%d sites, %d completions, %d empty polls", len(set.Sites), len(delivered), empty)
}

// deliveredWC is one completion as the caller got it.
type deliveredWC struct {
	CQ      uint64
	Content [sizeofWC]byte
}

func readDelivered(t *testing.T, from io.Reader) []deliveredWC {
	t.Helper()
	var found []deliveredWC
	for {
		var d deliveredWC
		require.NoError(t, binary.Read(from, binary.NativeEndian, &d))
		if d.CQ == 0 {
			return found
		}
		found = append(found, d)
	}
}

func compareDelivered(t *testing.T, delivered []deliveredWC, hits []siteRecord, set SiteSet) {
	t.Helper()
	require.NotEmpty(t, delivered)
	perSite := make([]int, len(set.Sites))
	for _, h := range hits {
		perSite[h.Site]++
	}
	for i, n := range perSite {
		assert.NotZero(t, n, "site at %#x was not reached", set.Sites[i].Offset)
	}
	if set.Kind == SitesPartial {
		require.Less(t, len(hits), len(delivered), set.Reason)
		return
	}
	require.Equal(t, len(delivered), len(hits), "hits by site %v", perSite)
	for i, h := range hits {
		site := set.Sites[h.Site]
		require.Equal(t, delivered[i].CQ, h.CQ, "completion %d, at site %#x", i, site.Offset)
		if site.Complete {
			require.Zero(t, h.Failed, "reading the completion failed")
			require.Equal(t, delivered[i].Content, h.Content, "completion %d, at site %#x", i, site.Offset)
		}
	}
}
