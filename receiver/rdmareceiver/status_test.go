package rdmareceiver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
)

// service is what a collector does with the status of its components: reports
// go through one lock, and a fatal error is handed over while it is held. The
// collector reads one, only once everything has started, and never again.
type service struct {
	reports sync.Mutex
	fatal   chan error
}

// serviceHost is the service as one component sees it.
type serviceHost struct {
	component.Host
	service *service
}

func (h *serviceHost) Report(event *componentstatus.Event) {
	h.service.reports.Lock()
	defer h.service.reports.Unlock()
	if event.Status() == componentstatus.StatusFatalError {
		h.service.fatal <- event.Err()
	}
}

// run starts the components as a collector does, and stops them after a fatal
// error or the given time. It returns what ended it.
func (s *service) run(components []component.Component, lifetime time.Duration) error {
	hosts := make([]*serviceHost, len(components))
	err := func() error {
		for i, c := range components {
			hosts[i] = &serviceHost{Host: componenttest.NewNopHost(), service: s}
			hosts[i].Report(componentstatus.NewEvent(componentstatus.StatusStarting))
			if err := c.Start(context.Background(), hosts[i]); err != nil {
				return err
			}
			hosts[i].Report(componentstatus.NewEvent(componentstatus.StatusOK))
		}
		select {
		case err := <-s.fatal:
			return err
		case <-time.After(lifetime):
			return nil
		}
	}()
	for i, c := range components {
		if hosts[i] != nil {
			hosts[i].Report(componentstatus.NewEvent(componentstatus.StatusStopping))
		}
		err = errors.Join(err, c.Shutdown(context.Background()))
	}
	return err
}

// The collector takes one fatal error. A second report, or one while it starts
// or stops, would block everything that reports a status, and so its shutdown.
func TestFailedStartNeverHoldsUpTheCollector(t *testing.T) {
	for _, mode := range []ErrorMode{ErrorModeIgnore, ErrorModePropagate} {
		t.Run(string(mode), func(t *testing.T) {
			p := handPlatform(nil)
			p.startEngine = func(context.Context, engineConfig) (engine, error) { return nil, errNoBPF }
			r := newRig(t)
			r.cfg.ErrorMode = mode
			r.factory = newFactory(p)
			r.addTraces(r.traces)
			r.addMetrics(r.metrics)
			r.addLogs(r.logs)
			s := &service{fatal: make(chan error)}
			ended := make(chan error, 1)
			go func() { ended <- s.run(r.components, 100*time.Millisecond) }()
			select {
			case err := <-ended:
				if mode == ErrorModePropagate {
					require.ErrorIs(t, err, errNoBPF)
				} else {
					assert.NoError(t, err, "the collector goes on")
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the collector hangs: a status was reported that nobody takes")
			}
		})
	}
}
