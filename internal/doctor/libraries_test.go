package doctor

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

func library(inode uint64, name string, sets ...provider.SiteSet) provider.File {
	return provider.File{
		ID: provider.FileID{Inode: inode}, DisplayPath: "/usr/lib/lib" + name + ".so",
		Library: &provider.Library{Kind: provider.Provider, Name: name, Sites: sets},
	}
}

func TestLibraries(t *testing.T) {
	site := provider.Site{
		WC: provider.Location{Base: provider.Place{Kind: provider.PlaceRegister}}, CQ: provider.Location{Base: provider.Place{Kind: provider.PlaceRegister}}, Complete: true,
	}
	good := provider.SiteSet{Function: provider.PollCQ, Kind: provider.SitesFull, Sites: []provider.Site{site}}
	none := provider.SiteSet{Function: provider.PollCQ, Kind: provider.SitesNone, Reason: "it does nothing"}
	mlx5, mana := library(1, "mlx5", good), library(2, "mana", none)
	verbs := provider.File{ID: provider.FileID{Inode: 3}, Library: &provider.Library{Kind: provider.Verbs, Name: "libibverbs"}}
	closed := &provider.PermissionError{Op: "read", Path: "/proc/1/maps", Capability: "CAP_SYS_PTRACE", Err: fs.ErrPermission}
	for name, test := range map[string]struct {
		facts libraryFacts
		want  []expected
	}{
		"none":          {libraryFacts{}, []expected{{Note, "no provider of rdma-core"}}},
		"verbs alone":   {libraryFacts{installed: []provider.File{verbs}}, []expected{{Note, "no provider of rdma-core"}}},
		"installed":     {libraryFacts{installed: []provider.File{verbs, mlx5}}, []expected{{OK, "1 provider of rdma-core, 1 installed, 0 loaded by processes; observed without a probe on an empty poll: mlx5"}}},
		"both":          {libraryFacts{installed: []provider.File{mlx5}, used: []provider.File{mlx5}}, []expected{{OK, "1 provider of rdma-core, 1 installed, 1 loaded by processes"}}},
		"without sites": {libraryFacts{installed: []provider.File{mlx5, mana}}, []expected{{OK, "2 providers"}, {Note, "mana (poll_cq)"}}},
		"used without":  {libraryFacts{installed: []provider.File{mana}, used: []provider.File{mana}}, []expected{{OK, "empty poll: none"}, {Note, "by entry and return: mana (poll_cq)"}}},
		"errors": {libraryFacts{
			installed: []provider.File{mlx5}, counters: provider.Counters{Refused32Bit: 1},
			errors: []error{errors.New("malformed"), fs.ErrNotExist, closed},
		}, []expected{{OK, "0 loaded by processes that could be looked into; observed"}, {Warning, "not traced: malformed"}, {Note, "1 32-bit verbs library"}}},
		"nothing seen": {libraryFacts{errors: []error{closed}}, []expected{{Note, "no process that could be looked into has one"}}},
		"denied nonetheless": {libraryFacts{installed: []provider.File{mlx5}, errors: []error{closed}, own: sight{held: holding()}}, []expected{
			{OK, "0 loaded by processes; observed"},
			{Unknown, "1 process or library could not be looked into though this process has CAP_SYS_PTRACE, the first: read /proc/1/maps: permission denied | A security module"},
		}},
	} {
		expect(t, name, judgeLibraries(test.facts), test.want...)
	}
}

func TestLibrariesAreSearched(t *testing.T) {
	s := machine(t, fabrictest.NoRDMA, noCollector{})
	assert.Equal(t, Note, worst(s.checkLibraries(t.Context())))
}
