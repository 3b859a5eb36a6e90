package rdmareceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// statusBoard reports the status of the shared instance for each of the
// components that share it. It is safe for concurrent use.
type statusBoard struct {
	mu    sync.Mutex
	hosts []component.Host
	last  *componentstatus.Event
}

// join adds a component, which hears at once what was reported before.
func (b *statusBoard) join(host component.Host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts = append(b.hosts, host)
	if b.last != nil {
		componentstatus.ReportStatus(host, b.last)
	}
}

func (b *statusBoard) report(event *componentstatus.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = event
	for _, host := range b.hosts {
		componentstatus.ReportStatus(host, event)
	}
}

// reportHealth reports what does not work at present, and that everything does
// when it is nil. What was reported last is not reported again.
func (b *statusBoard) reportHealth(err error) {
	failing := b.failing()
	switch {
	case err == nil && failing != nil:
		b.report(componentstatus.NewEvent(componentstatus.StatusOK))
	case err != nil && (failing == nil || failing.Error() != err.Error()):
		b.report(componentstatus.NewRecoverableErrorEvent(err))
	}
}

// failing is what was reported last as not working, nil when it was that
// everything does.
func (b *statusBoard) failing() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil || b.last.Status() != componentstatus.StatusRecoverableError {
		return nil
	}
	return b.last.Err()
}
