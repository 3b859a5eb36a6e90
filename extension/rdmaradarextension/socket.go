package rdmaradarextension

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

const (
	// socketMode lets the user and the group of the collector's process in.
	socketMode = 0o660
	// directoryMode lets everybody see that there is a socket: who may not open it is
	// told so.
	directoryMode = 0o755
	// socketWriteLimit is how long an answer may take to be sent; a stream has a limit
	// for each event.
	socketWriteLimit = 30 * time.Second
)

// serveSocket serves the pages on the socket as well. There the permission of a file is
// the boundary, and a browser does not get to it: there is no token and no name to ask
// for. Without it the page works, so that what prevents it is a warning.
func (e *radarExtension) serveSocket(ctx context.Context, pages http.Handler, host component.Host) {
	listener, err := listenSocket(ctx, e.cfg.Socket)
	if err != nil {
		e.settings.Logger.Warn("The socket of the radar is not served: rdmaradar top finds no collector.", zap.Error(err))
		return
	}
	server := &http.Server{
		Handler: localHandler(pages), ReadTimeout: readLimit, ReadHeaderTimeout: readLimit, WriteTimeout: socketWriteLimit,
		ErrorLog: zap.NewStdLog(e.settings.Logger),
	}
	e.serve(server, listener, host)
	e.settings.Logger.Info("The radar is on a socket too: rdmaradar top shows it.", zap.String("socket", e.cfg.Socket))
}

// localHandler answers whoever could open the socket.
func localHandler(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		if !onlyReads(r.Method) {
			refuseMethod(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// listenSocket makes the socket, and its directory where that is missing.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := makeDirectory(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w; make it, such as by RuntimeDirectory= of systemd, or set socket to another path", err)
	}
	removeStale(ctx, path)
	listener, err := (&net.ListenConfig{Control: closeToOthers}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w; %s", path, err, remedyFor(err, path))
	}
	listener = ownedAt(path, listener)
	// The umask of the process may have closed it to the group as well.
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("open the socket to the group: %w", err), listener.Close())
	}
	return listener, nil
}

// makeDirectory makes a directory that is not there, whatever the umask of the process
// is. One that is there stays as it is.
func makeDirectory(path string) error {
	switch err := os.Mkdir(path, directoryMode); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	default:
		return os.Chmod(path, directoryMode)
	}
}

// remedyFor says what to do when the path cannot be listened on.
func remedyFor(err error, path string) string {
	info, statErr := os.Lstat(path)
	switch {
	case !errors.Is(err, syscall.EADDRINUSE):
		return "set socket to a path that the collector's user may make"
	case statErr == nil && info.Mode().Type() != fs.ModeSocket:
		return "there is a file that is no socket: remove it, or set socket to another path"
	default:
		return "another collector serves it: stop that, or set socket to another path"
	}
}

// removeStale removes a socket that nobody listens on: a collector that was killed
// leaves it, and the next one could not start.
func removeStale(ctx context.Context, path string) {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = connection.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		// What cannot be removed is told when it cannot be listened on.
		_ = os.Remove(path)
	}
}
