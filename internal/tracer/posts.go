package tracer

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// postKind is one of the functions that post, and the programs for it.
type postKind struct {
	function     provider.Function
	index        bpf.TrackerPostFunction
	enter, leave string
}

var postKinds = []postKind{
	{provider.PostSend, bpf.TrackerPostFunctionPOST_SEND, bpf.TrackerProgEnterPostSend, bpf.TrackerProgLeavePostSend},
	{provider.PostRecv, bpf.TrackerPostFunctionPOST_RECEIVE, bpf.TrackerProgEnterPostRecv, bpf.TrackerProgLeavePostRecv},
	{provider.PostSRQRecv, bpf.TrackerPostFunctionPOST_SHARED_RECEIVE, bpf.TrackerProgEnterPostSrqRecv, bpf.TrackerProgLeavePostRecv},
}

// postFunction is one kind of post of a library and the probes on it. Where the
// instructions are known at which it reports a refused work request, entry and
// these suffice, and returns may be probed besides for a while: with them the
// stages post and queue are known apart, and the error of a refused post.
// Elsewhere returns are always probed.
type postFunction struct {
	postKind
	executable *link.Executable
	targets    []provider.Target
	library    uint32 // cookie
	sites      []refusalSite
	// siteIndexes are the elements of the map sites that belong to them.
	siteIndexes []uint32

	enter, leave, site []link.Link
	// closer is the library's.
	closer *closer
	// released is since when returns are only waited for, zero while they are
	// expected of every post.
	released time.Time
}

// postingTime is how long a post may take.
const postingTime = time.Second

// refusalSite is a site of one of the functions of the kind.
type refusalSite struct {
	offset  uint64
	encoded bpf.TrackerSite
}

func (f *postFunction) takeLinks() []link.Link {
	var links []link.Link
	for _, l := range []*[]link.Link{&f.enter, &f.leave, &f.site} {
		links = append(links, *l...)
		*l = nil
	}
	return links
}

// mode is how refused posts and the ends of posts are observed.
func (f *postFunction) mode() pollMode {
	if len(f.leave) > 0 {
		return modeWindows
	}
	return modeSite
}

// preparePosts prepares every kind of post of a library, without a probe on it
// yet.
func (k *kernelSide) preparePosts(a *attachment) error {
	for _, p := range postKinds {
		targets := a.file.Library.Find(p.function)
		if len(targets) == 0 {
			continue
		}
		f := &postFunction{postKind: p, executable: a.executable, targets: targets, library: a.cookie, closer: &a.closer}
		a.posts = append(a.posts, f)
		if err := k.placeRefusals(f, a.file.Library); err != nil {
			return fmt.Errorf("%s: %w", p.function, err)
		}
	}
	return nil
}

// placePost attaches the probes of the mode that the function is in. Entries
// come last: what they begin is to be seen to its end.
func (k *kernelSide) placePost(f *postFunction, kind linkKind) error {
	f.released = time.Time{}
	if err := k.attachRefusals(f, kind); err != nil {
		// A place that the kernel refuses is a reason to do without.
		f.sites = nil
		f.closer.closeAll(&f.site)
	}
	if f.sites == nil {
		if err := k.attachReturns(f, kind); err != nil {
			return err
		}
	}
	var err error
	f.enter, err = k.attachPoint(f.executable, point{f.function, f.postKind.enter, false}, f.entryPlaces(), uint64(f.library), kind)
	return err
}

// entryPlaces are the cheapest instructions for a probe on entry; where returns
// are always probed too, those at which one trap does for both.
func (f *postFunction) entryPlaces() []uint64 {
	if f.sites == nil {
		return f.returnPlaces()
	}
	var places []uint64
	for _, target := range f.targets {
		places = append(places, target.EntryOffset)
	}
	return places
}

func (f *postFunction) returnPlaces() []uint64 {
	var places []uint64
	for _, target := range f.targets {
		places = append(places, target.ReturnOffset)
	}
	return places
}

// placeRefusals tells the kernel side how to read the refused work request at
// the sites of all the functions, if all have them.
func (k *kernelSide) placeRefusals(f *postFunction, library *provider.Library) error {
	if k.entryReturn {
		return nil
	}
	var sites []refusalSite
	for _, target := range f.targets {
		set, ok := library.SitesOf(target.Offset)
		usable, _ := usableRefusals(set)
		if !ok || usable == nil {
			return nil
		}
		for _, site := range usable {
			encoded, err := encodeRefusal(library.Machine, site, f.index)
			if err != nil {
				return fmt.Errorf("the site at %#x: %w", site.Offset, err)
			}
			sites = append(sites, refusalSite{site.Offset, encoded})
		}
	}
	if len(sites) > len(k.freeSites) {
		return nil
	}
	f.sites = sites
	f.siteIndexes = k.takeSites(len(sites))
	for i := range sites {
		if err := k.sites.store(f.siteIndexes[i], &sites[i].encoded); err != nil {
			return err
		}
	}
	return nil
}

func (k *kernelSide) attachRefusals(f *postFunction, kind linkKind) error {
	offsets := make([]uint64, len(f.sites))
	for i, site := range f.sites {
		offsets[i] = site.offset
	}
	p := point{f.function, bpf.TrackerProgPostRefused, false}
	links, err := k.attachEach(f.executable, p, offsets, f.library, f.siteIndexes, kind)
	f.site = append(f.site, links...)
	return err
}

// attachReturns begins to probe the returns of the posts that are entered from
// now on.
func (k *kernelSide) attachReturns(f *postFunction, kind linkKind) error {
	links, err := k.attachPoint(f.executable, point{f.function, f.postKind.leave, true}, f.returnPlaces(), uint64(f.library), kind)
	f.leave = append(f.leave, links...)
	if err != nil {
		f.closer.closeAll(&f.leave)
		return err
	}
	return k.expectReturns(f, true)
}

// turnReturns probes returns while they are wanted, where sites do the rest. When
// they are not wanted any more, posts that were entered until then get the time
// to return: one that does not is counted as nested_call when its thread posts
// again.
func (k *kernelSide) turnReturns(f *postFunction, wanted bool, now time.Time, kind linkKind) error {
	probed := len(f.leave) > 0
	switch {
	case f.sites == nil: // They are always probed.
		return nil
	case wanted && !probed:
		return k.attachReturns(f, kind)
	case wanted && !f.released.IsZero():
		f.released = time.Time{}
		return k.expectReturns(f, true)
	case !wanted && probed && f.released.IsZero():
		f.released = now
		return k.expectReturns(f, false)
	case !wanted && probed && now.Sub(f.released) >= postingTime:
		f.released = time.Time{}
		f.closer.closeAll(&f.leave)
		return nil
	default:
		return nil
	}
}

func (k *kernelSide) expectReturns(f *postFunction, on bool) error {
	library, err := k.libraries.load(f.library)
	if err != nil {
		return err
	}
	returns := library.Returns &^ (1 << f.index)
	if on {
		returns |= 1 << f.index
	}
	return k.libraries.store32(f.library, unsafe.Offsetof(library.Returns), returns)
}

// turnPost probes the returns of posts while the evidence of polls is gathered,
// and gives up sites that do not tell of every refused post: those that failed
// while returns were seen have to have passed one.
func (t *Tracer) turnPost(a *attachment, f *postFunction, library bpf.TrackerLibrary, now time.Time) error {
	if f.sites == nil || library.Unmarked[f.index] == 0 {
		return t.side.turnReturns(f, a.gathersEvidence(), now, t.kind)
	}
	if err := t.side.turnReturns(f, true, now, t.kind); err != nil {
		return err
	}
	f.sites = nil
	t.warnings.warn(now, "a post was refused without a mark where it was looked for: its returns are probed from now on",
		"library", a.file.DisplayPath, "function", f.function.String(), "mode", string(f.mode()))
	f.closer.closeAll(&f.site)
	return nil
}
