// Package process reads facts of a process from /proc: its names, container,
// batch job, rank and trace context.
//
// The files of a process are written by that process and are not trusted:
// every read is bounded, every text is cleaned, and of the environment only
// the keys of an allow-list are ever kept. Command lines are not read.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// Facts describe one process at one moment. Texts are valid UTF-8 without
// control characters and at most 255 bytes long; "" means not known.
type Facts struct {
	// PID is the process id in the PID namespace of the proc root.
	PID int
	// StartTicks is the creation time in clock ticks (10 ms) since boot, as
	// in field 22 of proc_pid_stat(5). With PID it names one process.
	StartTicks uint64
	// StartTime is the creation time by the wall clock, good to a second: the
	// kernel states the time of boot in whole seconds.
	StartTime time.Time

	// Executable is the file name of the program, or Name when the link to
	// it cannot be read. Name is the comm of the main thread.
	Executable, Name string
	// ServiceName is OTEL_SERVICE_NAME, else service.name of
	// OTEL_RESOURCE_ATTRIBUTES, else Executable. ServiceNamespace is
	// service.namespace of OTEL_RESOURCE_ATTRIBUTES.
	ServiceName, ServiceNamespace string

	// ContainerID is the full 64-digit id of the innermost container.
	ContainerID string
	// SlurmJobID is decimal. SlurmStepID is decimal or "batch", "extern" or
	// "interactive", as in the names of Slurm's cgroups.
	SlurmJobID, SlurmStepID string

	Placement
	// Trace is the parsed TRACEPARENT, zero when there is none or it is
	// malformed.
	Trace TraceContext
}

// ErrIncomplete is wrapped by errors that come with usable facts: the process
// is known, but a part of it could not be read. The message names the parts.
var ErrIncomplete = errors.New("incomplete facts")

// ErrGone is wrapped when the process has exited, or when its PID went to
// another process while it was read.
var ErrGone = errors.New("process has exited")

// execAttempts bounds how often a process that keeps calling execve is read.
const execAttempts = 3

var errExec = errors.New("the process executed another program while it was read")

// Reader reads facts from a proc root. It is safe for concurrent use.
type Reader struct {
	root string
	boot bootTime
}

// NewReader returns a Reader of the proc file system at root, "" for /proc.
// PIDs are those of the namespace in which that file system was mounted.
func NewReader(root string) *Reader {
	if root == "" {
		root = "/proc"
	}
	return &Reader{root: root}
}

// Facts reads the facts of a process. All of them are of one process and one
// program: if the PID changes hands meanwhile the error wraps ErrGone.
//
// An error that wraps ErrIncomplete comes with facts that are right as far as
// they go. With any other error there are none.
//
// The environment is the one given to the last execve, so variables that a
// program set for itself afterwards are not seen.
//
// The kernel may block for as long as the process keeps its own memory locked;
// Cache bounds that wait.
func (r *Reader) Facts(pid int) (Facts, error) {
	dir, err := openProcess(r.root, pid)
	if err != nil {
		return Facts{}, fmt.Errorf("read facts of process %d: %w", pid, err)
	}
	defer dir.Close()

	facts, err := r.stable(pid, dir)
	switch {
	case err == nil:
		return facts, nil
	case errors.Is(err, ErrIncomplete):
		return facts, fmt.Errorf("process %d: %w", pid, err)
	default:
		return Facts{}, fmt.Errorf("read facts of process %d: %w", pid, err)
	}
}

// stable reads until no execve came between the parts.
func (r *Reader) stable(pid int, dir files) (facts Facts, err error) {
	for range execAttempts {
		facts, err = r.once(pid, dir)
		if !errors.Is(err, errExec) {
			return facts, err
		}
	}
	return facts, err
}

func (r *Reader) once(pid int, dir files) (Facts, error) {
	before, err := readStat(dir)
	if err != nil {
		return Facts{}, err
	}
	boot, err := r.boot.of(r.root)
	if err != nil {
		return Facts{}, err
	}
	program, exeErr := readExecutable(dir)
	groups, groupErr := readCgroups(dir)
	environ, environErr := readEnviron(dir)
	after, err := readStat(dir)
	if err != nil {
		return Facts{}, err
	}
	programAfter, _ := readExecutable(dir)
	if before.startTicks != after.startTicks {
		return Facts{}, fmt.Errorf("%w: the process id was reused", ErrGone)
	}
	if before.envStart != after.envStart || program != programAfter {
		return Facts{}, errExec
	}

	facts := assemble(environ, groups, program, after.comm)
	facts.PID = pid
	facts.StartTicks = after.startTicks
	facts.StartTime = after.startTime(boot)
	return facts, incomplete(exeErr, groupErr, environErr, after.exiting())
}

// textLimit is the longest text in Facts, in bytes.
const textLimit = 255

func clean(foreign string) string { return text.Clean(foreign, textLimit) }

// assemble combines what was read; it is a pure function.
func assemble(environ map[string]string, groups cgroups, program, comm string) Facts {
	facts := Facts{
		Name:        clean(comm),
		Executable:  clean(program),
		ContainerID: groups.container,
		Trace:       parseTraceparent(environ[keyTraceparent]),
	}
	if facts.Executable == "" {
		facts.Executable = facts.Name
	}
	facts.SlurmJobID, facts.SlurmStepID = slurmIDs(groups, environ)
	facts.Placement = placementOf(environ, facts.SlurmStepID)
	facts.ServiceName, facts.ServiceNamespace = serviceOf(environ)
	if facts.ServiceName == "" {
		facts.ServiceName = facts.Executable
	}
	return facts
}

// incomplete joins what failed, nil when nothing did. A part that vanished
// with the process is not worth a word of its own.
func incomplete(parts ...error) error {
	var failed []string
	for _, err := range parts {
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrIncomplete, strings.Join(failed, "; "))
}

// part names the part that could not be read and what would help.
func part(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w (CAP_SYS_PTRACE is needed)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// vanished reports whether the error means that there is no such process.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
