package rdmareceiver

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// instances are the receivers of one factory, and so of one collector. The
// three signals of a configuration share one, and only one may run: two would
// probe every function twice and count every completion twice.
type instances struct {
	mu       sync.Mutex
	byConfig map[*Config]*rdmaReceiver
	running  *rdmaReceiver
}

func newInstances() *instances {
	return &instances{byConfig: map[*Config]*rdmaReceiver{}}
}

// of returns the instance of a configuration, and makes it for the first signal.
func (i *instances) of(cfg *Config, create func() (*rdmaReceiver, error)) (*rdmaReceiver, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r := i.byConfig[cfg]; r != nil {
		return r, nil
	}
	r, err := create()
	if err != nil {
		return nil, err
	}
	i.byConfig[cfg] = r
	return r, nil
}

// acquire lets one instance run.
func (i *instances) acquire(r *rdmaReceiver) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running != nil && i.running != r {
		return &secondInstanceError{second: r.settings.ID, running: i.running.settings.ID}
	}
	i.running = r
	return nil
}

// release makes room for another instance.
func (i *instances) release(r *rdmaReceiver) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byConfig[r.cfg] == r {
		delete(i.byConfig, r.cfg)
	}
	if i.running == r {
		i.running = nil
	}
}

type secondInstanceError struct {
	second, running component.ID
}

func (e *secondInstanceError) Error() string {
	return fmt.Sprintf("receiver %q cannot run beside receiver %q: one instance traces every process of the host, "+
		"and a second would count everything twice; use %q in all pipelines and remove %q", e.second, e.running, e.running, e.second)
}
