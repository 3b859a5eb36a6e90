package provider

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realProviders are the providers whose functions run here without their
// device: they only look at memory that they share with it.
var realProviders = []string{"mlx5", "rxe", "erdma"}

// TestRealProviders runs the poll and post functions of every packaged libmlx5,
// librxe and liberdma on queues made by hand, with probes at their sites. At
// each site the probe must read what the caller gets, no more and no less
// often.
func TestRealProviders(t *testing.T) {
	cache := packageCache(t)
	needBPF(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc on this machine to build the driver with")
	}
	versions := realPackages(t)
	ran := map[string]int{}
	for _, version := range sortedKeys(versions) {
		t.Run(version, func(t *testing.T) {
			dir := unpack(t, cache, versions[version])
			for _, name := range realProviders {
				path := realLibrary(t, dir, name)
				if path == "" {
					require.Equal(t, "33.2-1 erdma", version+" "+name, "this provider is missing")
					continue
				}
				t.Run(name, func(t *testing.T) {
					runProvider(t, dir, path, name, version)
					ran[name]++
				})
			}
		})
	}
	t.Logf("versions that ran: %v", ran)
}

// realPackages groups the packages by version.
func realPackages(t *testing.T) map[string][]pinned {
	t.Helper()
	versions := map[string][]pinned{}
	for _, p := range pinnedPackages(t) {
		if p.arch == "amd64" && p.ofProviders() {
			versions[p.version] = append(versions[p.version], p)
		}
	}
	return versions
}

// realLibrary finds the library of a provider, "" if there is none.
func realLibrary(t *testing.T, dir, provider string) string {
	t.Helper()
	for name, path := range sharedObjects(t, dir) {
		if strings.HasPrefix(name, "lib"+provider+"-rdmav") || strings.HasPrefix(name, "lib"+provider+".so.") {
			return path
		}
	}
	return ""
}

// runProvider runs all functions of one library.
func runProvider(t *testing.T, dir, path, provider, version string) {
	library := inspectOne(t, dir, path)
	runner := newRealRunner(t, path, provider, version)
	// libmlx5 has a poll_cq for each format of CQ entries.
	assert.Len(t, library.Find(PollCQ), map[string]int{"mlx5": 2, "rxe": 1, "erdma": 1}[provider])
	for _, target := range library.Targets {
		set, ok := library.SitesOf(target.Offset)
		require.True(t, ok)
		require.Equal(t, SitesFull, set.Kind, set.Reason)
		t.Run(fmt.Sprintf("%s-%#x", target.Function, target.Offset), func(t *testing.T) {
			run := runner.start(t, target)
			probes := attachSites(t, path, 0, library, set.Sites)
			if target.Function == PollCQ {
				run.polls(t, probes, set)
				return
			}
			run.posts(t, probes, set)
		})
	}
}

// inspectOne analyses one provider of unpacked packages.
func inspectOne(t *testing.T, dir, path string) *Library {
	t.Helper()
	for name, verbs := range sharedObjects(t, dir) {
		if strings.HasPrefix(name, "libibverbs.so") {
			_, slots, err := InspectVerbs(readAll(t, verbs))
			require.NoError(t, err)
			library, err := InspectProvider(readAll(t, path), slots)
			require.NoError(t, err)
			return library
		}
	}
	require.Fail(t, "no libibverbs", dir)
	return nil
}

// polls runs a function that polls.
func (r *realRun) polls(t *testing.T, probes *siteProbes, set SiteSet) {
	perSite := make([]int, len(set.Sites))
	calls := r.command(t, 'p')
	hits := probes.drain(t)
	compareHits(t, deliveredBy(calls), hits, set, perSite)
	r.compareEntries(t, hits, set)
	r.assertVariety(t, calls)

	calls = r.command(t, 't')
	shared, hits := deliveredBy(calls), probes.drain(t)
	// Threads that share a CQ do not tell in which order they were served.
	sortByID(shared, func(d deliveredWC) []byte { return d.Content[:] })
	sortByID(hits, func(h siteRecord) []byte { return h.Content[:] })
	compareHits(t, shared, hits, set, perSite)
	r.compareEntries(t, hits, set)

	if r.provider != "rxe" {
		r.unknown(t, probes, set, perSite)
	}
	if r.provider == "mlx5" {
		calls = r.command(t, 'r')
		compareHits(t, deliveredBy(calls), probes.drain(t), set, perSite)
	}

	require.Empty(t, r.command(t, 'e'))
	require.Equal(t, 1_000_000, r.calls)
	require.Empty(t, probes.drain(t), "hits in empty polls")
	assertReached(t, perSite, set)
	t.Logf("hits at the sites: %v; none in %d empty polls", perSite, r.calls)
}

// unknown runs into completions of queues that do not exist. rxe does not look
// at queues.
func (r *realRun) unknown(t *testing.T, probes *siteProbes, set SiteSet, perSite []int) {
	t.Helper()
	calls := r.command(t, 'u')
	compareHits(t, deliveredBy(calls), probes.drain(t), set, perSite)
	failed := slices.DeleteFunc(calls, func(c realCall) bool { return c.Returned >= 0 })
	// mlx5 fails, after what it delivered before; erdma goes on and says nothing.
	assert.Len(t, failed, map[string]int{"mlx5": 300, "erdma": 0}[r.provider], "calls that failed")
	for _, c := range failed {
		require.Equal(t, int32(-2), c.Returned)
	}
}

func deliveredBy(calls []realCall) []deliveredWC {
	var all []deliveredWC
	for _, c := range calls {
		for _, content := range c.contents {
			all = append(all, deliveredWC{CQ: c.Object, Content: content})
		}
	}
	return all
}

// sortByID sorts by what the content begins with, wr_id, which is unique here.
func sortByID[E any](s []E, content func(E) []byte) {
	slices.SortFunc(s, func(a, b E) int {
		return cmp.Compare(binary.NativeEndian.Uint64(content(a)), binary.NativeEndian.Uint64(content(b)))
	})
}

func compareHits(t *testing.T, delivered []deliveredWC, hits []siteRecord, set SiteSet, perSite []int) {
	t.Helper()
	require.NotEmpty(t, delivered)
	for _, h := range hits {
		perSite[h.Site]++
	}
	require.Equal(t, len(delivered), len(hits), "hits")
	for i, h := range hits {
		require.Zero(t, h.Failed, "reading completion %d failed", i)
		require.Equal(t, delivered[i], deliveredWC{h.CQ, h.Content}, "completion %d, at site %#x", i, set.Sites[h.Site].Offset)
	}
}

// compareEntries checks that the entry of the CQ found at each site is that of the
// completion: its time stamp is the one that was made for this wr_id, and the
// number of its queue pair is that of the completion.
func (r *realRun) compareEntries(t *testing.T, hits []siteRecord, set SiteSet) {
	t.Helper()
	stamps := 0
	for i, h := range hits {
		known := set.Sites[h.Site].CQE.Known()
		require.Equal(t, r.provider == "mlx5", known, "the entry at site %#x", set.Sites[h.Site].Offset)
		if !known {
			continue
		}
		number := binary.BigEndian.Uint32(h.Entry[8:]) & 0xffffff
		require.Equal(t, binary.NativeEndian.Uint32(h.Content[qpNumberInWC:]), number, "queue pair of entry %d", i)
		if binary.NativeEndian.Uint32(h.Content[8:]) != 0 {
			continue // What failed has no stamp.
		}
		stamps++
		require.Equal(t, ^binary.NativeEndian.Uint64(h.Content[:]), binary.BigEndian.Uint64(h.Entry[:]), "time stamp of entry %d", i)
	}
	if r.provider == "mlx5" {
		assert.Greater(t, stamps, 1000, "completions with a time stamp")
		t.Logf("%d time stamps of %d completions", stamps, len(hits))
	}
}

// assertVariety checks that the random polls were of every kind.
func (r *realRun) assertVariety(t *testing.T, calls []realCall) {
	t.Helper()
	statuses, opcodes, sources, cqs := map[uint32]int{}, map[uint32]int{}, map[byte]int{}, map[uint64]int{}
	batches, short := 0, 0
	for _, c := range calls {
		cqs[c.Object]++
		if c.Returned > 1 {
			batches++
		}
		if c.Asked < c.Waiting {
			short++
		}
		for _, content := range c.contents {
			status := binary.NativeEndian.Uint32(content[8:])
			statuses[status]++
			sources[content[7]]++
			if status == 0 {
				opcodes[binary.NativeEndian.Uint32(content[12:])]++
			}
		}
	}
	// IBV_WC_SEND, RDMA_WRITE, RDMA_READ, RECV, RECV_RDMA_WITH_IMM.
	for _, opcode := range []uint32{0, 1, 2, 128, 129} {
		assert.NotZero(t, opcodes[opcode], "opcode %d", opcode)
	}
	const flushed = 5 // IBV_WC_WR_FLUSH_ERR
	assert.NotZero(t, statuses[flushed], "flushed")
	assert.GreaterOrEqual(t, len(statuses), 7, "kinds of status")
	want := 3
	if r.provider == "erdma" {
		want = 2 // It has no shared receive queues.
	}
	assert.Len(t, sources, want, "kinds of queues")
	assert.Len(t, cqs, 3, "CQs")
	assert.Greater(t, batches, 1000, "calls that delivered several")
	assert.Greater(t, short, 500, "calls that asked for less than there was")
	t.Logf("status %v, opcode %v, queue %v, batches %d, asked for less %d", statuses, opcodes, sources, batches, short)
}

// posts runs a function that posts: where a post fails, the site tells the
// request and the queue.
func (r *realRun) posts(t *testing.T, probes *siteProbes, set SiteSet) {
	require.Empty(t, r.command(t, 'g'))
	require.Equal(t, 200_000, r.calls)
	require.Empty(t, probes.drain(t), "hits in posts that did not fail")

	calls, hits := r.command(t, 'b'), probes.drain(t)
	require.Len(t, calls, 3000)
	require.Equal(t, len(calls), len(hits), "hits")
	perSite, results := make([]int, len(set.Sites)), map[int32]int{}
	for i, h := range hits {
		perSite[h.Site]++
		results[calls[i].Returned]++
		require.Zero(t, h.Failed, "reading request %d failed", i)
		require.Equal(t, calls[i].Failed, h.WC, "request that failed in post %d, at site %#x", i, set.Sites[h.Site].Offset)
		require.Equal(t, calls[i].Object, h.CQ, "queue of post %d, at site %#x", i, set.Sites[h.Site].Offset)
	}
	assertReached(t, perSite, set)
	assert.GreaterOrEqual(t, len(results), 2, "results")
	t.Logf("hits at the sites: %v, results %v; none in %d good posts", perSite, results, 200_000)
}

// unreached counts the sites that nothing here leads to: libmlx5 33.2 has more
// than one, some for binds, segmented sends and raw packets.
func unreached(test string) int {
	return map[string]int{"33.2-1/mlx5/post_send": 5}[test]
}

// assertReached checks that the sites were hit.
func assertReached(t *testing.T, perSite []int, set SiteSet) {
	t.Helper()
	var missed []string
	for i, n := range perSite {
		if n == 0 {
			missed = append(missed, fmt.Sprintf("%#x", set.Sites[i].Offset))
		}
	}
	test, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestRealProviders/"), "-0x")
	assert.Len(t, missed, unreached(test), "sites that were not reached: %v", missed)
}
