package tracer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// pollFunction is one poll_cq of a library and the probes on it.
type pollFunction struct {
	executable *link.Executable
	target     provider.Target
	library    uint32 // cookie
	index      uint32 // in the map poll_functions
	sites      []provider.Site
	// siteIndexes are the elements of the map sites that belong to them.
	siteIndexes []uint32

	ladder                   ladder
	evidence                 evidence
	enter, leave, site, look []link.Link
	// closer is the library's.
	closer *closer
}

func (f *pollFunction) takeLinks() []link.Link {
	var links []link.Link
	for _, l := range []*[]link.Link{&f.enter, &f.leave, &f.site, &f.look} {
		links = append(links, *l...)
		*l = nil
	}
	return links
}

func (f *pollFunction) countLinks() int {
	return len(f.enter) + len(f.leave) + len(f.site) + len(f.look)
}

// preparePoll prepares a poll_cq, without a probe on it yet.
func (k *kernelSide) preparePoll(a *attachment, target provider.Target, number uint32) error {
	each := k.functions.length / k.libraries.length
	if number >= each {
		return fmt.Errorf("more than %d functions of that kind", each)
	}
	f := &pollFunction{executable: a.executable, target: target, library: a.cookie, index: a.cookie*each + number, closer: &a.closer}
	a.polls = append(a.polls, f)
	if err := k.functions.store(f.index, &bpf.TrackerPollFunction{}); err != nil {
		return err
	}
	if err := k.placeSites(f, a.file.Library); err != nil {
		return err
	}
	f.ladder = newLadder(time.Now(), f.sites != nil, k.verdicts.Of(a.file.Library, target.Offset))
	f.evidence = newEvidence(k.evidenceEvery, time.Now())
	return nil
}

// placeSites tells the kernel side how to read completions at the sites.
func (k *kernelSide) placeSites(f *pollFunction, library *provider.Library) error {
	set, ok := library.SitesOf(f.target.Offset)
	if !ok || k.entryReturn || k.verdicts.Of(library, f.target.Offset) == provider.Wrong {
		return nil
	}
	sites, _ := usableSites(set)
	if sites == nil || len(sites) > len(k.freeSites) {
		return nil
	}
	f.siteIndexes = k.takeSites(len(sites))
	for i, site := range sites {
		encoded, err := encodeSite(library.Machine, site, f.index)
		if err != nil {
			return fmt.Errorf("completion site %#x: %w", site.Offset, err)
		}
		if err := k.sites.store(f.siteIndexes[i], &encoded); err != nil {
			return err
		}
	}
	f.sites = sites
	return nil
}

// turnPoll moves a poll_cq on in its mode.
func (t *Tracer) turnPoll(a *attachment, f *pollFunction, suspicions uint64, now time.Time) error {
	function, err := t.side.functions.load(f.index)
	if err != nil {
		return err
	}
	step, why := f.ladder.next(sighting{now: now, function: function, suspicions: suspicions})
	switch step {
	case stepStay:
		return nil
	case stepCompare:
		t.logMode(slog.LevelInfo, a, f, why)
		f.closer.closeAll(&f.look)
		f.evidence.begin(now)
		if err := t.side.openReturns(f, t.kind); err != nil {
			// The sites go on, and are compared with the next suspicion.
			f.ladder.enter(modeSite, now)
			return errors.Join(err, t.side.closeReturns(f))
		}
		return nil
	case stepTrust:
		t.side.verdicts.Record(a.file.Library, f.target.Offset, provider.Verified)
		return t.side.setReturns(f, false, true)
	case stepLeave:
		f.evidence.begin(now)
		t.logMode(slog.LevelInfo, a, f, "completions are observed at completion sites, empty polls not at all")
		return t.side.closeReturns(f)
	case stepRefute, stepGiveUp:
		verdict := provider.Unverified
		if step == stepRefute {
			verdict = provider.Wrong
		}
		t.side.verdicts.Record(a.file.Library, f.target.Offset, verdict)
		f.ladder.enter(modeWindows, now)
		t.logMode(slog.LevelWarn, a, f, why+": it is observed by entry and return, which traps on every poll")
		return t.side.closeSites(f)
	default:
		return fmt.Errorf("unknown step %d", step)
	}
}

func (t *Tracer) logMode(level slog.Level, a *attachment, f *pollFunction, what string) {
	t.log.Log(context.Background(), level, what, "library", a.file.DisplayPath, "function", f.target.Function.String(), "mode", string(f.ladder.mode))
}

// placePoll attaches the probes of the mode that the function is in.
func (k *kernelSide) placePoll(f *pollFunction, kind linkKind) error {
	if f.ladder.mode != modeWindows {
		if err := k.attachSites(f, kind); err != nil {
			// A place that the kernel refuses is a reason to do without, also when
			// the sites were verified on another kernel.
			f.ladder.enter(modeWindows, time.Now())
			f.sites = nil
			f.closer.closeAll(&f.site)
		}
	}
	if f.ladder.mode == modeSite {
		return k.beginAnew(f, bpf.TrackerPollFunction{})
	}
	return k.openReturns(f, kind)
}

// openReturns attaches the return before the entry, see dataPath, and lets it
// deliver the calls that begin from now on.
func (k *kernelSide) openReturns(f *pollFunction, kind linkKind) error {
	comparing := f.ladder.mode == modeComparing
	if err := k.beginAnew(f, bpf.TrackerPollFunction{Returns: 1, Compares: asUint32(comparing)}); err != nil {
		return err
	}
	cookie := uint64(f.library) | uint64(f.index)<<32
	places := []uint64{f.target.ReturnOffset}
	var err error
	leave := point{provider.PollCQ, bpf.TrackerProgLeavePollCq, true}
	if f.leave, err = k.attachPoint(f.executable, leave, places, cookie, kind); err != nil {
		return err
	}
	enter := point{provider.PollCQ, bpf.TrackerProgEnterPollCq, false}
	f.enter, err = k.attachPoint(f.executable, enter, places, cookie, kind)
	return err
}

// closeReturns takes entry and return off. Until they are gone they see calls of
// which they know that sites deliver them.
func (k *kernelSide) closeReturns(f *pollFunction) error {
	err := k.beginAnew(f, bpf.TrackerPollFunction{})
	f.closer.closeAll(&f.enter)
	f.closer.closeAll(&f.leave)
	return err
}

// closeSites leaves the function to entry and return. Until they are gone sites
// are passed inside of calls of which they know that the return delivers.
func (k *kernelSide) closeSites(f *pollFunction) error {
	f.sites = nil
	err := k.setReturns(f, true, false)
	f.closer.closeAll(&f.site)
	return err
}

func (k *kernelSide) attachSites(f *pollFunction, kind linkKind) error {
	offsets := make([]uint64, len(f.sites))
	for i, site := range f.sites {
		offsets[i] = site.Offset
	}
	p := point{provider.PollCQ, bpf.TrackerProgCompletionSite, false}
	links, err := k.attachEach(f.executable, p, offsets, f.library, f.siteIndexes, kind)
	f.site = append(f.site, links...)
	return err
}
