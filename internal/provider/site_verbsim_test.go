package provider

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbsim"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVerbsimSites runs the simulated provider, whose functions are real code,
// with counting probes at its sites. Their hits must be the completions and
// the rejected posts of the workload's own books.
func TestVerbsimSites(t *testing.T) {
	bin, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	require.NoError(t, err)
	binary := filepath.Join(bin, "verbsim")
	for _, name := range []string{"libverbsim-rdmav34.so", "libverbsim-rdmav34-nocet.so", "libverbsim-rdmav34-mlx5.so"} {
		content, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Skipf("no simulated provider: run make verbsim: %v", err)
		}
		needBPF(t)
		library := filepath.Join(t.TempDir(), "libverbsim-rdmav34.so")
		require.NoError(t, os.WriteFile(library, content, 0o755))
		sites := verbsimSites(t, library)
		for _, site := range sites {
			known := site.Function == PollCQ && strings.Contains(name, "mlx5")
			require.Equal(t, known, site.CQE.Known(), "the CQ entry at %#x of %s", site.Offset, name)
		}
		for _, scenario := range []string{"poll256", "threads", "errors", "srq", "idle-poll", "enomem"} {
			t.Run(name+"/"+scenario, func(t *testing.T) {
				counters := countSites(t, library, sites)
				dir := t.TempDir()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				command := verbsim.Command(ctx, binary, scenario, "--seconds", "0.5", "--provider", library, "--truth", filepath.Join(dir, "truth"))
				var out, complaints bytes.Buffer
				command.Stdout, command.Stderr, command.Dir = &out, &complaints, dir
				require.NoError(t, command.Run(), complaints.String())
				truth, err := verbsim.Read(filepath.Join(dir, "truth"))
				require.NoError(t, err)
				require.NotZero(t, truth.Counts.Delivered)
				assert.Equal(t, truth.Counts.Delivered, counters.sum(t, sites, PollCQ), "completions")
				assert.Equal(t, truth.Counts.RejectedPosts, counters.sum(t, sites, PostSend), "rejected posts")
				t.Logf("%d completions, %d rejected posts, %d empty polls", truth.Counts.Delivered, truth.Counts.RejectedPosts, truth.Counts.EmptyPolls)
			})
		}
	}
}

func verbsimSites(t *testing.T, library string) []Site {
	t.Helper()
	verbs, err := os.ReadFile(installed(t)["libibverbs"].Path)
	require.NoError(t, err)
	_, slots, err := InspectVerbs(bytes.NewReader(verbs))
	require.NoError(t, err)
	found, err := InspectProvider(readAll(t, library), slots)
	require.NoError(t, err)
	var sites []Site
	for _, set := range found.Sites {
		if set.Function == PollCQ || set.Function == PostSend {
			require.Equal(t, SitesFull, set.Kind, "%s: %s", set.Function, set.Reason)
			sites = append(sites, set.Sites...)
		}
		for _, row := range siteRows(&Library{Machine: found.Machine, Sites: []SiteSet{set}}) {
			t.Log(row)
		}
	}
	return sites
}
