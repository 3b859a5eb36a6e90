package rdmaradarextension

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

const (
	// endLimit is how long what is being served may go on after the end.
	endLimit = 2 * time.Second
	// openAgain is how often it is tried to listen where somebody else does.
	openAgain = 2 * time.Second
)

// radarExtension serves the page.
type radarExtension struct {
	cfg      *Config
	settings extension.Settings
	token    string

	// servers are that of the page and that of the socket. closing ends their streams,
	// which otherwise last as long as somebody looks.
	servers []*running
	closing context.CancelFunc
	// opening is what waits for the endpoint to become free.
	opening sync.WaitGroup

	mu    sync.Mutex
	shown *radar.State
}

var _ radar.Board = (*radarExtension)(nil)

func newRadar(cfg *Config, settings extension.Settings, token string) *radarExtension {
	return &radarExtension{cfg: cfg, settings: settings, token: token}
}

// Start serves the page. There need not be a receiver, now or later.
func (e *radarExtension) Start(ctx context.Context, host component.Host) error {
	if err := e.checkCertificate(ctx); err != nil {
		return err
	}
	streaming, closing := context.WithCancel(context.Background())
	pages := newPages(newSource(e.current, streaming.Done()))
	err := e.open(ctx, pages, host)
	// A path is not anybody's to take, as a port is.
	taken := errors.Is(err, syscall.EADDRINUSE) && !e.cfg.onSocket()
	if err != nil && !taken {
		closing()
		return e.cannotListen(err)
	}
	e.closing = closing
	if e.cfg.Socket != "" {
		e.serveSocket(ctx, pages, host)
	}
	if taken {
		e.report(host, componentstatus.NewRecoverableErrorEvent(e.cannotListen(err)))
		e.opening.Go(func() { e.openLater(streaming, pages, host) })
	}
	return nil
}

// checkCertificate finds out what is wrong with the certificate before anybody waits for
// the port.
func (e *radarExtension) checkCertificate(ctx context.Context) error {
	if !e.cfg.HTTP.TLS.HasValue() {
		return nil
	}
	if _, err := e.cfg.HTTP.TLS.Get().LoadTLSConfig(ctx); err != nil {
		return fmt.Errorf("set up TLS of the radar page: %w", err)
	}
	return nil
}

// open listens where the page is to be, and serves it.
func (e *radarExtension) open(ctx context.Context, pages http.Handler, host component.Host) error {
	if e.cfg.onSocket() {
		removeStale(ctx, e.cfg.HTTP.NetAddr.Endpoint)
	}
	listener, err := e.cfg.HTTP.ToListener(ctx)
	if err != nil {
		return err
	}
	if e.cfg.onSocket() {
		listener = ownedAt(e.cfg.HTTP.NetAddr.Endpoint, listener)
	}
	telemetry := e.settings.TelemetrySettings
	// Spans of the server would carry the path, and in it the token.
	telemetry.TracerProvider = tracenoop.NewTracerProvider()
	// Its metrics would carry each name by which it was asked for, also by those whom
	// it refuses.
	telemetry.MeterProvider = metricnoop.NewMeterProvider()
	server, err := e.cfg.HTTP.ToServer(ctx, host.GetExtensions(), telemetry, http.StripPrefix("/"+e.token, pages))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server.Handler = &guard{token: e.token, hosts: hostsOf(e.cfg), next: server.Handler}
	e.serve(server, listener, host)
	e.settings.Logger.Info("The radar page is served; its URL is a secret.", e.where(listener.Addr())...)
	return nil
}

// openLater tries again until the port is free. Anybody on the node may listen on a port:
// that must not keep the collector from its work. Whoever did so meanwhile may have been
// asked for the page by somebody who knew the token, which is another one from now on.
func (e *radarExtension) openLater(ctx context.Context, pages http.Handler, host component.Host) {
	again := time.NewTicker(openAgain)
	defer again.Stop()
	e.token = rand.Text()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		switch err := e.open(ctx, pages, host); {
		case err == nil:
			e.report(host, componentstatus.NewEvent(componentstatus.StatusOK))
			return
		case ctx.Err() != nil:
			return
		case !errors.Is(err, syscall.EADDRINUSE):
			e.settings.Logger.Debug("The radar page still waits for its port.", zap.Error(err))
		}
	}
}

// report tells the log and the collector how the page is.
func (e *radarExtension) report(host component.Host, status *componentstatus.Event) {
	if err := status.Err(); err != nil {
		e.settings.Logger.Warn("The radar page is not served.", zap.Error(err))
	}
	componentstatus.ReportStatus(host, status)
}

// cannotListen says what to do about it.
func (e *radarExtension) cannotListen(err error) error {
	if network := (*net.OpError)(nil); !errors.As(err, &network) {
		return fmt.Errorf("set up the server of the radar page: %w", err)
	}
	return fmt.Errorf("listen on endpoint %s for the radar page: %w; %s, or remove the extension", e.cfg.HTTP.NetAddr.Endpoint, err, e.remedyFor(err))
}

func (e *radarExtension) remedyFor(err error) string {
	inUse := errors.Is(err, syscall.EADDRINUSE)
	switch {
	case inUse && e.cfg.onSocket():
		return "free it, set endpoint to another path"
	case inUse:
		return "free it, set endpoint to another port"
	case e.cfg.onSocket():
		return "set endpoint to a path that the collector's user may make"
	case errors.Is(err, fs.ErrPermission):
		return "set endpoint to a port that the collector's user may listen on, such as 55690"
	default:
		return "set endpoint to an address of this node"
	}
}

// where tells where the page is. The port is that of the listener: 0 in the
// configuration takes any.
func (e *radarExtension) where(listening net.Addr) []zap.Field {
	scheme := "http"
	if e.cfg.HTTP.TLS.HasValue() {
		scheme = "https"
	}
	address, ok := listening.(*net.TCPAddr)
	if !ok {
		url := fmt.Sprintf("%s://localhost/%s/", scheme, e.token)
		return []zap.Field{zap.String("url", url), zap.String("socket", e.cfg.HTTP.NetAddr.Endpoint)}
	}
	host, _, err := net.SplitHostPort(e.cfg.HTTP.NetAddr.Endpoint)
	switch ip := net.ParseIP(host); {
	case err != nil || host == "" || ip != nil && ip.IsUnspecified():
		host = "localhost"
	case address.IP.IsLoopback() && scheme == "http":
		// Not "localhost": that is two addresses, one is listened on, and whoever listens on
		// the other would be told the token. A certificate, with its name, rules that out.
		host = address.IP.String()
	}
	url := fmt.Sprintf("%s://%s/%s/", scheme, net.JoinHostPort(host, strconv.Itoa(address.Port)), e.token)
	return []zap.Field{zap.String("url", url)}
}

// Shutdown ends what is served, also while somebody looks.
func (e *radarExtension) Shutdown(ctx context.Context) error {
	if e.closing == nil {
		return nil
	}
	e.closing()
	e.opening.Wait()
	// The collector sets no limit, and one who reads or writes slowly must not hold up
	// its end or the reload of its configuration.
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	var failed []error
	for _, server := range e.servers {
		failed = append(failed, server.end(ctx))
	}
	return errors.Join(failed...)
}

// Show shows the state of a receiver.
func (e *radarExtension) Show(state *radar.State) (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shown = state
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.shown == state {
			e.shown = nil
		}
	}
}

// current is the state that is shown, nil when there is none.
func (e *radarExtension) current() *radar.State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shown
}
