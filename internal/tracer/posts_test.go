package tracer

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

func inRegister(register uint8) provider.Location {
	return provider.Location{Base: provider.Place{Kind: provider.PlaceRegister, Register: register}}
}

func TestUsableRefusals(t *testing.T) {
	site := provider.Site{Function: provider.PostSend, Offset: 0x40, WR: inRegister(3)}
	call, blind := site, site
	call.IsCall = true
	blind.WR = provider.Location{}
	set := func(kind provider.SiteKind, sites ...provider.Site) provider.SiteSet {
		return provider.SiteSet{Kind: kind, Sites: sites, Reason: "reason"}
	}
	for name, c := range map[string]struct {
		set    provider.SiteSet
		usable int
	}{
		"full":              {set(provider.SitesFull, site, site), 2},
		"partial":           {set(provider.SitesPartial, site), 0},
		"none":              {set(provider.SitesNone), 0},
		"a call":            {set(provider.SitesFull, site, call), 0},
		"an unknown place":  {set(provider.SitesFull, site, blind), 0},
		"QP or SRQ unknown": {set(provider.SitesFull, site), 1},
	} {
		t.Run(name, func(t *testing.T) {
			sites, reason := usableRefusals(c.set)
			assert.Len(t, sites, c.usable)
			assert.Equal(t, c.usable == 0, reason != "", reason)
		})
	}
}

func TestEncodeRefusal(t *testing.T) {
	site := provider.Site{WR: inRegister(3), QP: provider.Location{Base: provider.Place{Kind: provider.PlaceMemory, Register: 4, Offset: 8}, Add: -16}}
	encoded, err := encodeRefusal(elf.EM_X86_64, site, bpf.TrackerPostFunctionPOST_RECEIVE)
	require.NoError(t, err)
	want := bpf.TrackerSite{Function: 1}
	want.Wc.Base = bpf.TrackerSitePlace{Kind: 1, RegisterOffset: 40}             // rbx
	want.Cq.Base = bpf.TrackerSitePlace{Kind: 2, RegisterOffset: 152, Offset: 8} // rsp
	want.Cq.Add = -16
	assert.Equal(t, want, encoded)

	site.WR = inRegister(16)
	_, err = encodeRefusal(elf.EM_X86_64, site, bpf.TrackerPostFunctionPOST_SEND)
	assert.Error(t, err)
}
