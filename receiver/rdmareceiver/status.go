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

// reportStartFailure reports that tracing could not start.
func (b *statusBoard) reportStartFailure(err error, mode ErrorMode) {
	if mode == ErrorModePropagate {
		b.report(componentstatus.NewFatalErrorEvent(err))
		return
	}
	b.report(componentstatus.NewPermanentErrorEvent(err))
}

// reportSnapshot reports a failure to read the aggregates, and the recovery from
// it.
func (b *statusBoard) reportSnapshot(err error) {
	if err != nil {
		b.report(componentstatus.NewRecoverableErrorEvent(err))
		return
	}
	if b.failing() {
		b.report(componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

func (b *statusBoard) failing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last != nil && b.last.Status() == componentstatus.StatusRecoverableError
}
