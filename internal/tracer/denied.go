package tracer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// denials keeps what could not be looked into for lack of permission, and says
// so once for each capability: hundreds of processes lack the same. It is safe
// for concurrent use.
type denials struct {
	log  *slog.Logger
	held map[string]bool

	mu      sync.Mutex
	said    map[string]bool
	missing []string
	first   error
}

func newDenials(log *slog.Logger, held map[string]bool) *denials {
	return &denials{log: log, held: held, said: map[string]bool{}}
}

// note takes an error of looking into a process. It is false when the error has
// nothing to do with a capability.
func (d *denials) note(err error) bool {
	denied := new(provider.PermissionError)
	if !errors.As(err, &denied) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.said[denied.Capability] {
		return true
	}
	d.said[denied.Capability] = true
	switch {
	case d.held[denied.Capability]:
		// Such as a network file system that does not trust root.
		d.log.Warn("verbs libraries are not traced where a file system or security module denies access in spite of "+denied.Capability+
			"; let root read them there (no root_squash, an allowing policy), or have the library on a local file system",
			"first", denied.Path, "error", denied.Err)
	case denied.Capability == "CAP_SYS_PTRACE", denied.Capability == "CAP_DAC_READ_SEARCH":
		d.missing = append(d.missing, denied.Capability)
		d.first = cmp.Or(d.first, error(&fs.PathError{Op: denied.Op, Path: denied.Path, Err: denied.Err}))
		d.log.Warn("not everything can be seen without "+denied.Capability+": "+capabilityNamed(denied.Capability).Without, "error", denied)
	default:
		d.log.Info("verbs libraries that were deleted or replaced while a process uses them are not found", "error", denied)
	}
	return true
}

func (d *denials) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.missing) == 0 {
		return nil
	}
	return &CapabilityError{Missing: slices.Clone(d.missing), Op: "tracing every process", Err: d.first}
}

// Impaired says what keeps the tracer from seeing every process, a
// *CapabilityError, and what from probing the RDMA core where that is loaded, such
// as a *KernelError; nil when nothing does. What it can see it traces.
func (t *Tracer) Impaired() error {
	// Both parts need the same types of the core: one sentence is enough.
	core := cmp.Or(t.resources.failure(), t.kernel.failure())
	switch denied := t.denials.err(); {
	case denied == nil:
		return core
	case core == nil:
		return denied
	default:
		return fmt.Errorf("%w; %w", denied, core)
	}
}

// notLookedInto tells of a process or library that was out of reach. Most such
// errors are of processes that have ended, and not worth a line.
func (t *Tracer) notLookedInto(err error, args ...any) {
	if t.denials.note(err) {
		return
	}
	if errors.Is(err, provider.ErrHangs) {
		t.tellHanging()
	}
	t.log.Debug("a process was not looked into", append(args, "error", err)...)
}

// tellHanging tells what holds up looks at processes, when it is not what was told
// last.
func (t *Tracer) tellHanging() {
	now := strings.Join(t.finder.Hanging(), ", ")
	if before := t.hanging.Load(); now == "" || before != nil && *before == now {
		return
	}
	if t.warnings.warn(time.Now(), "verbs libraries are not looked for where reading does not come to an end, as on a network file system without its server", "where", now) {
		t.hanging.Store(&now)
	}
}
