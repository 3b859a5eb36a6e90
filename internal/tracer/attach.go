package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// point is one program at one kind of function.
type point struct {
	function provider.Function
	program  string
	isReturn bool
}

// controlPath lists the probes on libibverbs. Returns come before entries: a call
// whose return alone is seen is ignored, one whose entry alone is seen would
// look as if it never ended.
var controlPath = []point{
	{provider.CreateQP, bpf.TrackerProgLeaveCreateQp, true},
	{provider.CmdCreateQP, bpf.TrackerProgLeaveCmdCreateQp, true},
	{provider.ModifyQP, bpf.TrackerProgLeaveModifyQp, true},
	{provider.CreateQP, bpf.TrackerProgEnterCreateQp, false},
	{provider.CmdCreateQP, bpf.TrackerProgEnterCmdCreateQp, false},
	{provider.ModifyQP, bpf.TrackerProgEnterModifyQp, false},
	{provider.DestroyQP, bpf.TrackerProgEnterDestroyQp, false},
	{provider.DestroySRQ, bpf.TrackerProgEnterDestroySrq, false},
	{provider.SetOps, bpf.TrackerProgEnterSetOps, false},
}

// attachment is the probes on one file.
type attachment struct {
	file provider.File
	// open keeps the file within reach when its process has ended: probes
	// may come and go later.
	open   *os.File
	cookie uint32
	// watch is the number under which writeWatch has it.
	watch uint32
	// foreign says that the file does not belong to root.
	foreign bool
	// order is how many files were attached to before this one.
	order uint64
	// executable and places are where probes stand but for those on posts and
	// poll_cq.
	executable *link.Executable
	places     []placed
	links      []link.Link
	posts      []*postFunction
	polls      []*pollFunction
	// schedule says when it is observed; failures counts how often in a row its
	// probes were not attached for a window, off that they are not tried again.
	schedule schedule
	credit   credit
	failures int
	off      bool
	// slow is how many completions of the library had been slow at the last turn,
	// slowed says that it were more than at the turn before.
	slow   uint64
	slowed bool
	// hit says that a process has called its functions.
	hit bool
	// extended is set once objects of the extended verbs were seen.
	extended *extendedLibrary
	// used is when a search last found a process with the file.
	used time.Time
	// closer holds the links that were taken off, forsaken says that what was
	// outstanding when a window ended is given up once they are gone, resets that
	// what is when the file is left while processes use it.
	closer   closer
	forsaken bool
	resets   bool
}

// count is the number of links that are attached.
func (a *attachment) count() int {
	n := len(a.links)
	for _, f := range a.posts {
		n += len(f.enter) + len(f.leave) + len(f.site)
	}
	for _, f := range a.polls {
		n += f.countLinks()
	}
	return n
}

// newAttachment is for a file that is open: the process through which it was
// found may end at any moment, and its paths with it. It takes the open file over.
func newAttachment(file provider.File, open *os.File, cookie uint32) (*attachment, error) {
	executable, err := link.OpenExecutable("/proc/self/fd/" + strconv.Itoa(int(open.Fd())))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("probing %s: %w", file.DisplayPath, err), open.Close())
	}
	return &attachment{file: file, open: open, cookie: cookie, executable: executable, schedule: newSchedule(time.Now()), credit: credit{left: verification}}, nil
}

// prepare finds the places for probes, and tells the kernel side what is to be
// read there.
func (k *kernelSide) prepare(a *attachment) error {
	library := a.file.Library
	if library.Kind == provider.Verbs {
		a.takePlaces(controlPath)
	}
	if err := k.preparePosts(a); err != nil {
		return fmt.Errorf("probing %s: %w", a.file.DisplayPath, err)
	}
	for i, target := range library.Find(provider.PollCQ) {
		if err := k.preparePoll(a, target, uint32(i)); err != nil {
			return fmt.Errorf("probing poll_cq of %s: %w", a.file.DisplayPath, err)
		}
	}
	return nil
}

// gathersEvidence says whether the entry of a poll_cq is probed for its time
// alone.
func (a *attachment) gathersEvidence() bool {
	return slices.ContainsFunc(a.polls, func(f *pollFunction) bool { return f.evidence.open })
}

// paysForEvidence says whether what its threads paid since the last turn is for
// that.
func (a *attachment) paysForEvidence() bool {
	return slices.ContainsFunc(a.polls, func(f *pollFunction) bool {
		return f.ladder.mode == modeSite && (f.evidence.open || f.evidence.leaving)
	})
}

// compares says whether completion sites are being compared with entry and
// return.
func (a *attachment) compares() bool {
	return slices.ContainsFunc(a.polls, func(f *pollFunction) bool { return f.ladder.mode == modeComparing })
}

// placed is a point at its file offsets.
type placed struct {
	point
	offsets []uint64
}

// takePlaces notes where the points are in the file.
func (a *attachment) takePlaces(points []point) {
	for _, p := range points {
		if offsets := offsetsOf(a.file.Library, p); len(offsets) > 0 {
			a.places = append(a.places, placed{p, offsets})
		}
	}
}

// offsetsOf returns the file offsets of a point. An entry probe on a function
// whose return is probed too stands at the same instruction: one trap for both.
func offsetsOf(library *provider.Library, p point) []uint64 {
	var offsets []uint64
	for _, target := range library.Find(p.function) {
		offset := target.ReturnOffset
		if !p.isReturn && !hasReturnProbe(p.function) {
			offset = target.EntryOffset
		}
		offsets = append(offsets, offset)
	}
	return offsets
}

func hasReturnProbe(function provider.Function) bool {
	switch function {
	case provider.DestroyQP, provider.DestroySRQ, provider.SetOps:
		return false
	default:
		return true
	}
}

func (k *kernelSide) attachPoint(executable *link.Executable, p point, places []uint64, cookie uint64, kind linkKind) ([]link.Link, error) {
	program := k.collection.Programs[p.program]
	if kind == linkMulti {
		options := &link.UprobeMultiOptions{Addresses: places, Cookies: make([]uint64, len(places))}
		for i := range places {
			options.Cookies[i] = cookie
		}
		attach := executable.UprobeMulti
		if p.isReturn {
			attach = executable.UretprobeMulti
		}
		l, err := attach(nil, program, options)
		if err != nil {
			return nil, err
		}
		return []link.Link{l}, nil
	}
	attach := executable.Uprobe
	if p.isReturn {
		attach = executable.Uretprobe
	}
	var links []link.Link
	for _, place := range places {
		l, err := attach(p.function.String(), program, &link.UprobeOptions{Address: place, Cookie: cookie})
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

func attachError(err error, kind linkKind) error {
	if !errors.Is(err, os.ErrPermission) && !errors.Is(err, unix.EPERM) {
		return err
	}
	missing := []string{"CAP_BPF", "CAP_PERFMON"}
	if kind == linkPerfEvent {
		missing = []string{"CAP_SYS_ADMIN"}
	}
	return &CapabilityError{Missing: missing, Op: "attaching uprobes", Err: err}
}

// takeLinks empties the attachment of its links.
func (a *attachment) takeLinks() []link.Link {
	links := a.links
	a.links = nil
	for _, f := range a.posts {
		links = append(links, f.takeLinks()...)
	}
	for _, f := range a.polls {
		links = append(links, f.takeLinks()...)
	}
	return links
}

// attachSystem attaches the probes that belong to no file.
func (k *kernelSide) attachSystem() error {
	for name, program := range map[string]string{
		"sched_process_exec": bpf.TrackerProgProcessExec,
		"sched_process_exit": bpf.TrackerProgProcessExit,
	} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: k.collection.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching to the tracepoint %s: %w", name, err)
		}
		k.system = append(k.system, l)
	}
	if err := k.attachScheduler(); err != nil {
		return err
	}
	if k.watchesFiles {
		l, err := link.AttachTracing(link.TracingOptions{Program: k.collection.Programs[fileWatcher]})
		if err == nil {
			k.system = append(k.system, l)
			return nil
		}
		k.watchesFiles = false
	}
	if err := k.collection.Variables["watch_execs"].Set(uint32(1)); err != nil {
		return fmt.Errorf("watching programs that are started: %w", err)
	}
	return nil
}
