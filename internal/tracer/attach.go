package tracer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
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

// dataPath lists the probes on a provider, but for poll_cq, see polls.go. Returns come before entries: a call
// whose return alone is seen is ignored, one whose entry alone is seen would
// look as if it never ended.
var dataPath = []point{
	{provider.PostSend, bpf.TrackerProgLeavePostSend, true},
	{provider.PostRecv, bpf.TrackerProgLeavePostRecv, true},
	{provider.PostSRQRecv, bpf.TrackerProgLeavePostRecv, true},
	{provider.PostRecv, bpf.TrackerProgEnterPostRecv, false},
	{provider.PostSRQRecv, bpf.TrackerProgEnterPostSrqRecv, false},
	{provider.PostSend, bpf.TrackerProgEnterPostSend, false},
}

// controlPath lists the probes on libibverbs.
var controlPath = []point{
	{provider.CreateQP, bpf.TrackerProgLeaveCreateQp, true},
	{provider.CmdCreateQP, bpf.TrackerProgLeaveCmdCreateQp, true},
	{provider.CreateQP, bpf.TrackerProgEnterCreateQp, false},
	{provider.CmdCreateQP, bpf.TrackerProgEnterCmdCreateQp, false},
	{provider.ModifyQP, bpf.TrackerProgEnterModifyQp, false},
	{provider.DestroyQP, bpf.TrackerProgEnterDestroyQp, false},
	{provider.SetOps, bpf.TrackerProgEnterSetOps, false},
}

// attachment is the probes on one file.
type attachment struct {
	file provider.File
	// open keeps the file within reach when its process has ended: probes
	// may come and go later.
	open   *os.File
	cookie uint32
	links  []link.Link
	polls  []*pollFunction
	// extended is set once objects of the extended verbs were seen.
	extended *extendedLibrary
	// used is when a search last found a process with the file.
	used time.Time
}

// count is the number of links that are attached.
func (a *attachment) count() int {
	n := len(a.links)
	for _, f := range a.polls {
		n += len(f.enter) + len(f.leave) + len(f.site)
	}
	return n
}

// attach probes a file that is open: the process through which it was found
// may end at any moment, and its paths with it. The attachment owns the open
// file. On an error nothing stays attached.
func (k *kernelSide) attach(file provider.File, open *os.File, cookie uint32, kind linkKind) (*attachment, error) {
	executable, err := link.OpenExecutable("/proc/self/fd/" + strconv.Itoa(int(open.Fd())))
	if err != nil {
		_ = open.Close()
		return nil, fmt.Errorf("probing %s: %w", file.DisplayPath, err)
	}
	a := &attachment{file: file, open: open, cookie: cookie}
	points := dataPath
	if file.Library.Kind == provider.Verbs {
		points = controlPath
	}
	for _, p := range points {
		places := placesOf(file.Library, p)
		if len(places) == 0 {
			continue
		}
		links, err := k.attachPoint(executable, p, places, uint64(cookie), kind)
		a.links = append(a.links, links...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("probing %s of %s: %w", p.function, file.DisplayPath, attachError(err, kind)), a.close())
		}
	}
	for i, target := range file.Library.Find(provider.PollCQ) {
		f, err := k.attachPoll(executable, file.Library, target, cookie, uint32(i), kind)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("probing poll_cq of %s: %w", file.DisplayPath, attachError(err, kind)), a.close())
		}
		a.polls = append(a.polls, f)
	}
	return a, nil
}

// placesOf returns the file offsets of a point. An entry probe on a function
// whose return is probed too stands at the same instruction: one trap for both.
func placesOf(library *provider.Library, p point) []uint64 {
	var places []uint64
	for _, target := range library.Find(p.function) {
		place := target.ReturnOffset
		if !p.isReturn && !hasReturnProbe(p.function) {
			place = target.EntryOffset
		}
		places = append(places, place)
	}
	return places
}

func hasReturnProbe(function provider.Function) bool {
	switch function {
	case provider.ModifyQP, provider.DestroyQP, provider.SetOps:
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

func (a *attachment) close() error { return errors.Join(closeLinks(a.takeLinks()), a.open.Close()) }

// takeLinks empties the attachment of its links.
func (a *attachment) takeLinks() []link.Link {
	links := a.links
	a.links = nil
	for _, f := range a.polls {
		links = append(links, f.takeLinks()...)
	}
	return links
}

// closeLinks detaches all at once. The kernel waits for running programs with
// every single one, some tens of milliseconds; those waits can be shared.
func closeLinks(links []link.Link) error {
	errs := make([]error, len(links))
	var all sync.WaitGroup
	for i, l := range links {
		all.Go(func() { errs[i] = l.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// attachSystem attaches the probes that belong to no file.
func (k *kernelSide) attachSystem() error {
	for name, program := range map[string]string{
		"sched_process_exec": bpf.TrackerProgProcessExec,
		"sched_process_exit": bpf.TrackerProgProcessExit,
		"sched_switch":       bpf.TrackerProgSchedSwitch,
	} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: k.collection.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching to the tracepoint %s: %w", name, err)
		}
		k.system = append(k.system, l)
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
