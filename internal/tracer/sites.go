package tracer

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// usableSites are the completion sites of one poll_cq, such that every
// completion passes exactly one and all of it can be read there; nil and a
// reason when there are none.
func usableSites(set provider.SiteSet) ([]provider.Site, string) {
	if set.Kind != provider.SitesFull {
		return nil, "completion sites " + set.Kind.String() + ": " + set.Reason
	}
	if set.Shared != "" {
		return nil, set.Shared
	}
	sites := make([]provider.Site, 0, len(set.Sites))
	for _, site := range set.Sites {
		if site.IsCall {
			// Where user shadow stacks are on, some kernels emulate a call
			// wrongly and the program dies. Asking whether they are would gain
			// no function of any packaged provider.
			if site.Instead == nil {
				return nil, "a completion site is a call"
			}
			site = *site.Instead
		}
		if !site.WC.Known() || !site.CQ.Known() || !site.Complete || len(site.Overrides) > len(bpf.TrackerSite{}.Overrides) {
			return nil, "a completion site does not show the whole completion"
		}
		sites = append(sites, site)
	}
	return sites, ""
}

// usableRefusals are the sites at which a post reports the work request that it
// refuses, such that every failure passes one; nil and a reason when there are
// none.
func usableRefusals(set provider.SiteSet) ([]provider.Site, string) {
	if set.Kind != provider.SitesFull {
		return nil, "sites of refused posts " + set.Kind.String() + ": " + set.Reason
	}
	for _, site := range set.Sites {
		if site.IsCall || !site.WR.Known() {
			return nil, "a site of refused posts does not show the work request"
		}
	}
	return set.Sites, ""
}

// encodeRefusal is what the kernel side needs to read the refused work request
// at a site.
func encodeRefusal(machine elf.Machine, site provider.Site, function bpf.TrackerPostFunction) (bpf.TrackerSite, error) {
	encoded := bpf.TrackerSite{Function: uint32(function)}
	var err error
	if encoded.Wc, err = encodeLocation(machine, site.WR); err != nil {
		return encoded, err
	}
	encoded.Cq, err = encodeLocation(machine, site.QP)
	return encoded, err
}

// encodeSite is what the kernel side needs to read the completion at a site.
func encodeSite(machine elf.Machine, site provider.Site, function uint32) (bpf.TrackerSite, error) {
	encoded := bpf.TrackerSite{Function: function, OverrideCount: uint32(len(site.Overrides))}
	var err error
	if encoded.Wc, err = encodeLocation(machine, site.WC); err != nil {
		return encoded, err
	}
	if encoded.Cq, err = encodeLocation(machine, site.CQ); err != nil {
		return encoded, err
	}
	if encoded.Cqe, err = encodeLocation(machine, site.CQE); err != nil {
		return encoded, err
	}
	for i, override := range site.Overrides {
		from, err := encodePlace(machine, override.From)
		if err != nil {
			return encoded, err
		}
		encoded.Overrides[i].From = from
		encoded.Overrides[i].Constant = override.Constant
		encoded.Overrides[i].Offset = uint32(override.Offset)
		encoded.Overrides[i].Size = uint32(override.Size)
	}
	return encoded, nil
}

func encodeLocation(machine elf.Machine, l provider.Location) (encoded bpf.TrackerSiteLocation, err error) {
	encoded.Scale, encoded.Add = int64(l.Scale), l.Add
	if encoded.Base, err = encodePlace(machine, l.Base); err != nil {
		return encoded, err
	}
	encoded.Counter, err = encodePlace(machine, l.Counter)
	return encoded, err
}

func encodePlace(machine elf.Machine, p provider.Place) (encoded bpf.TrackerSitePlace, err error) {
	switch p.Kind {
	case provider.PlaceNone:
		return encoded, nil
	case provider.PlaceRegister:
		encoded.Kind = uint32(bpf.TrackerSitePlaceKindSITE_PLACE_REGISTER)
	case provider.PlaceMemory:
		encoded.Kind = uint32(bpf.TrackerSitePlaceKindSITE_PLACE_MEMORY)
		encoded.Offset = int64(p.Offset)
	default:
		return encoded, fmt.Errorf("a place of unknown kind %d", p.Kind)
	}
	offset, err := provider.RegisterOffset(machine, p.Register)
	encoded.RegisterOffset = uint32(offset)
	return encoded, err
}

// takeSites takes n elements of the map sites, of which so many are free.
func (k *kernelSide) takeSites(n int) []uint32 {
	taken := slices.Clone(k.freeSites[:n])
	k.freeSites = k.freeSites[n:]
	return taken
}

// giveBackSites frees the elements of the map that a library has.
func (k *kernelSide) giveBackSites(a *attachment) {
	for _, f := range a.posts {
		k.freeSites = append(k.freeSites, f.siteIndexes...)
	}
	for _, f := range a.polls {
		k.freeSites = append(k.freeSites, f.siteIndexes...)
	}
}

// attachEach attaches a program at every offset, with the element of the map
// sites that tells what to read there. What was attached before an error is
// returned with it.
func (k *kernelSide) attachEach(executable *link.Executable, p point, offsets []uint64, library uint32, indexes []uint32, kind linkKind) ([]link.Link, error) {
	var all []link.Link
	for i, offset := range offsets {
		cookie := uint64(library) | uint64(indexes[i])<<32
		links, err := k.attachPoint(executable, p, []uint64{offset}, cookie, kind)
		all = append(all, links...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
