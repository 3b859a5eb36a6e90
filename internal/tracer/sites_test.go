package tracer

import (
	"debug/elf"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

func register(number uint8) provider.Place {
	return provider.Place{Kind: provider.PlaceRegister, Register: number}
}

func goodSite() provider.Site {
	return provider.Site{
		Function: provider.PollCQ, Offset: 0x100, Complete: true,
		WC: provider.Location{Base: register(3), Add: -48},
		CQ: provider.Location{Base: register(12)},
	}
}

func TestUsableSites(t *testing.T) {
	call, callInstead, blind, early := goodSite(), goodSite(), goodSite(), goodSite()
	call.IsCall = true
	callInstead.IsCall = true
	instead := goodSite()
	instead.Offset = 0x104
	callInstead.Instead = &instead
	blind.CQ = provider.Location{}
	early.Complete = false
	for name, c := range map[string]struct {
		set    provider.SiteSet
		offset uint64
	}{
		"full":                {provider.SiteSet{Kind: provider.SitesFull, Sites: []provider.Site{goodSite()}}, 0x100},
		"partial":             {provider.SiteSet{Kind: provider.SitesPartial, Sites: []provider.Site{goodSite()}}, 0},
		"none":                {provider.SiteSet{}, 0},
		"shared":              {provider.SiteSet{Kind: provider.SitesFull, Shared: "a resize passes them too", Sites: []provider.Site{goodSite()}}, 0},
		"a call":              {provider.SiteSet{Kind: provider.SitesFull, Sites: []provider.Site{call}}, 0},
		"a call or a jump":    {provider.SiteSet{Kind: provider.SitesFull, Sites: []provider.Site{callInstead}}, 0x104},
		"no CQ":               {provider.SiteSet{Kind: provider.SitesFull, Sites: []provider.Site{goodSite(), blind}}, 0},
		"not yet all written": {provider.SiteSet{Kind: provider.SitesFull, Sites: []provider.Site{early}}, 0},
	} {
		sites, reason := usableSites(c.set)
		if c.offset == 0 {
			if sites != nil || reason == "" {
				t.Errorf("%s: %d sites, reason %q", name, len(sites), reason)
			}
			continue
		}
		if len(sites) != 1 || sites[0].Offset != c.offset {
			t.Errorf("%s: %+v, %s", name, sites, reason)
		}
	}
}

func TestEncodeSite(t *testing.T) {
	site := goodSite()
	site.WC = provider.Location{
		Base:    provider.Place{Kind: provider.PlaceMemory, Register: 4, Offset: 0x40},
		Counter: register(15), Scale: 48, Add: -48,
	}
	site.Overrides = []provider.FieldOverride{{Offset: 28, Size: 4, From: register(7)}}
	got, err := encodeSite(elf.EM_X86_64, site, 9)
	if err != nil {
		t.Fatal(err)
	}
	want := bpf.TrackerSite{Function: 9, OverrideCount: 1}
	want.Wc.Base = bpf.TrackerSitePlace{Kind: 2, RegisterOffset: 152, Offset: 0x40} // rsp
	want.Wc.Counter = bpf.TrackerSitePlace{Kind: 1, RegisterOffset: 0}              // r15
	want.Wc.Scale, want.Wc.Add = 48, -48
	want.Cq.Base = bpf.TrackerSitePlace{Kind: 1, RegisterOffset: 24} // r12
	want.Overrides[0] = bpf.TrackerSiteOverride{From: bpf.TrackerSitePlace{Kind: 1, RegisterOffset: 112}, Offset: 28, Size: 4}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	site.WC.Base.Register = 40
	if _, err := encodeSite(elf.EM_X86_64, site, 9); err == nil {
		t.Error("register 40 was accepted")
	}
}
