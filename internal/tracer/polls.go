package tracer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// pollMode is how the completions of one poll_cq are observed.
type pollMode string

const (
	// modeWindows: probes on entry and return. They trap on every poll, also
	// on an empty one.
	modeWindows pollMode = "windows"
	// modeComparing: entry and return deliver, and the completion sites are
	// compared with them, on live traffic.
	modeComparing pollMode = "comparing"
	// modeLeaving: the entry probe is gone, calls that it saw still return.
	modeLeaving pollMode = "leaving"
	// modeSite: probes on completion sites alone. An empty poll costs nothing.
	modeSite pollMode = "site"
)

const (
	// comparedEnough is how many completions and how many empty polls have to
	// agree before the sites are trusted.
	comparedEnough = 64
	// leavingTime is how long calls that were entered under a probe get to
	// return: a poll does not wait.
	leavingTime = time.Second
	// drainTime is for how long nothing must happen on a queue that is to be
	// aligned by a drain, DRAIN_NS of bpf/sync.h.
	drainTime = time.Second
	// mostFailures is how often sites may turn out wrong before they are
	// given up.
	mostFailures = 3
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

	mode               pollMode
	enter, leave, site []link.Link
	base               bpf.TrackerPollFunction // when the comparison began
	since              time.Time
	failures           int
	suspicions         uint64
}

func (f *pollFunction) takeLinks() []link.Link {
	var links []link.Link
	for _, l := range []*[]link.Link{&f.enter, &f.leave, &f.site} {
		links = append(links, *l...)
		*l = nil
	}
	return links
}

func closeAll(links *[]link.Link) error {
	taken := *links
	*links = nil
	return closeLinks(taken)
}

// attachPoll observes a poll_cq at its completion sites where those are known to
// be right. Elsewhere it does by entry and return, and compares completion sites
// with that where there are any.
func (k *kernelSide) attachPoll(executable *link.Executable, library *provider.Library, target provider.Target, cookie, number uint32, kind linkKind) (*pollFunction, error) {
	each := k.functions.length / k.libraries.length
	if number >= each {
		return nil, fmt.Errorf("more than %d functions of that kind", each)
	}
	f := &pollFunction{
		executable: executable, target: target, library: cookie,
		index: cookie*each + number, mode: modeWindows, since: time.Now(),
	}
	if err := k.functions.store(f.index, &bpf.TrackerPollFunction{}); err != nil {
		return nil, err
	}
	if err := k.placeSites(f, library); err != nil {
		return nil, err
	}
	if known, err := k.attachKnown(f, library, kind); known || err != nil {
		return f, err
	}
	if err := k.openWindow(f, kind); err != nil {
		return nil, errors.Join(err, closeLinks(f.takeLinks()))
	}
	if f.sites == nil {
		return f, nil
	}
	if err := k.attachSites(f, kind); err != nil {
		// A place that the kernel refuses is a reason to do without.
		f.sites = nil
		return f, closeAll(&f.site)
	}
	return f, k.compare(f)
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
	f.siteIndexes = slices.Clone(k.freeSites[:len(sites)])
	k.freeSites = k.freeSites[len(sites):]
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

// openWindow attaches the return before the entry, see dataPath.
func (k *kernelSide) openWindow(f *pollFunction, kind linkKind) error {
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

func (k *kernelSide) attachSites(f *pollFunction, kind linkKind) error {
	p := point{provider.PollCQ, bpf.TrackerProgCompletionSite, false}
	for i, site := range f.sites {
		cookie := uint64(f.library) | uint64(f.siteIndexes[i])<<32
		links, err := k.attachPoint(f.executable, p, []uint64{site.Offset}, cookie, kind)
		f.site = append(f.site, links...)
		if err != nil {
			return err
		}
	}
	return nil
}

// compare begins the comparison of sites with entry and return.
func (k *kernelSide) compare(f *pollFunction) error {
	base, err := k.functions.load(f.index)
	if err != nil {
		return err
	}
	f.base = base
	f.enterMode(modeComparing)
	return k.setCompares(f, 1)
}

func (k *kernelSide) setCompares(f *pollFunction, on uint32) error {
	return k.functions.store32(f.index, unsafe.Offsetof(bpf.TrackerPollFunction{}.Compares), on)
}

func (f *pollFunction) enterMode(mode pollMode) {
	f.mode = mode
	f.since = time.Now()
}

// turnPolls moves every poll_cq on in its mode. It is called every second.
func (t *Tracer) turnPolls() error {
	var errs []error
	for _, a := range t.libraries.attachments {
		for _, f := range a.polls {
			if err := t.turnPoll(a, f); err != nil {
				errs = append(errs, fmt.Errorf("observing poll_cq of %s: %w", a.file.DisplayPath, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (t *Tracer) turnPoll(a *attachment, f *pollFunction) error {
	switch f.mode {
	case modeComparing:
		return t.judge(a, f)
	case modeLeaving:
		if time.Since(f.since) < leavingTime {
			return nil
		}
		f.enterMode(modeSite)
		t.logMode(slog.LevelInfo, a, f, "completions are observed at completion sites, empty polls not at all")
		return errors.Join(closeAll(&f.leave), t.side.setCompares(f, 0))
	case modeSite:
		return t.guard(a, f)
	default:
		return nil
	}
}

// judge looks at what the comparison found.
func (t *Tracer) judge(a *attachment, f *pollFunction) error {
	now, err := t.side.functions.load(f.index)
	if err != nil {
		return err
	}
	if now.WrongCount != f.base.WrongCount || now.WrongContent != f.base.WrongContent {
		t.side.verdicts.Record(a.file.Library, f.target.Offset, provider.Wrong)
		return t.giveUpSites(a, f, "its completion sites disagree with what it returns")
	}
	if now.Completions-f.base.Completions < comparedEnough || now.EmptyPolls-f.base.EmptyPolls < comparedEnough {
		return nil
	}
	library, err := t.side.libraries.load(f.library)
	if err != nil {
		return err
	}
	f.suspicions = library.Suspicions
	t.side.verdicts.Record(a.file.Library, f.target.Offset, provider.Verified)
	f.enterMode(modeLeaving)
	return closeAll(&f.enter)
}

// guard watches for what cannot be when every completion is seen: then the
// sites are compared once more.
func (t *Tracer) guard(a *attachment, f *pollFunction) error {
	library, err := t.side.libraries.load(f.library)
	if err != nil {
		return err
	}
	if library.Suspicions == f.suspicions {
		return t.watchDrain(f)
	}
	f.suspicions = library.Suspicions
	f.failures++
	if err := t.side.openWindow(f, t.kind); err != nil {
		return err
	}
	if f.failures > mostFailures {
		t.side.verdicts.Record(a.file.Library, f.target.Offset, provider.Unverified)
		return t.giveUpSites(a, f, "completions did not add up again and again")
	}
	t.logMode(slog.LevelInfo, a, f, "a completion did not add up, comparing completion sites with entry and return")
	return t.side.compare(f)
}

// watchDrain goes back to entry and return while an unsynced queue is idle: only
// they see the empty polls that prove it drained. It costs the poller nothing
// that it needs, since it has nothing to do.
func (t *Tracer) watchDrain(f *pollFunction) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	idle := false
	err = t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		idle = idle || q.EndedNs == 0 && q.Library == f.library && q.Completions > 0 &&
			bpf.TrackerQueueSync(q.Sync) == bpf.TrackerQueueSyncQUEUE_UNSYNCED &&
			now > q.ActivityNs+uint64(drainTime) && now < q.ActivityNs+uint64(10*drainTime)
		return nil
	})
	if err != nil || !idle {
		return err
	}
	if err := t.side.openWindow(f, t.kind); err != nil {
		return err
	}
	return t.side.compare(f)
}

func (t *Tracer) giveUpSites(a *attachment, f *pollFunction, why string) error {
	f.enterMode(modeWindows)
	f.sites = nil
	t.logMode(slog.LevelWarn, a, f, why+": it is observed by entry and return, which traps on every poll")
	return errors.Join(closeAll(&f.site), t.side.setCompares(f, 0))
}

func (t *Tracer) logMode(level slog.Level, a *attachment, f *pollFunction, what string) {
	t.log.Log(context.Background(), level, what, "library", a.file.DisplayPath, "function", f.target.Function.String(), "mode", string(f.mode))
}
