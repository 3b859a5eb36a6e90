package rdmaradarextension

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// running is a server that runs; done is closed when it has ended.
type running struct {
	server *http.Server
	done   chan struct{}
}

// serve has a server serve until the extension ends.
func (e *radarExtension) serve(server *http.Server, listener net.Listener, host component.Host) {
	bound(server)
	r := &running{server: server, done: make(chan struct{})}
	e.servers = append(e.servers, r)
	go func() {
		defer close(r.done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewPermanentErrorEvent(fmt.Errorf("serve the radar page: %w", err)))
		}
	}()
}

// end waits for what is being served as long as the context lasts, and cuts it off
// then.
func (r *running) end(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = r.server.Close()
	}
	<-r.done
	return err
}
