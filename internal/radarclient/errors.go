package radarclient

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// explain says why nobody answers, and what to do. The error of the system alone would
// have the address in it, and with it the token.
func (c *Client) explain(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	err = foreign{err}
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return fmt.Errorf("ask the collector at %s: this machine does not know who signed its certificate (%w): "+
			"set SSL_CERT_FILE to a file with the certificate of the authority", c.Where(), err)
	}
	switch {
	case c.socket == "":
		return fmt.Errorf("ask the collector at %s: %w (%w)", c.Where(), ErrNotRunning, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("ask the collector on %s: %w: %s", c.socket, ErrDenied, whoMay(c.socket))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w on %s: there is no such socket. Start otelcol-rdma with the extension rdma_radar and its key socket, "+
			"or name another socket (--socket) or the address of the page (--url)", ErrNotRunning, c.socket)
	case errors.Is(err, syscall.ECONNREFUSED) && !isSocket(c.socket):
		return fmt.Errorf("%w on %s: that is no socket. Name the one of the key socket of rdma_radar (--socket)", ErrNotRunning, c.socket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w on %s: a collector that was killed has left the socket. Start it again: systemctl status otelcol-rdma tells why it ended",
			ErrNotRunning, c.socket)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the collector on %s does not answer: it is very busy, or stuck (%w)", c.socket, err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return fmt.Errorf("%w on %s: it ended while it was asked", ErrNotRunning, c.socket)
	default:
		return fmt.Errorf("ask the collector on %s: %w", c.socket, err)
	}
}

// isSocket is false only for what is known to be something else.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().Type() == fs.ModeSocket
}

// noView says that who answers is no radar, such as another server on the same port.
func (c *Client) noView(why error) error {
	return fmt.Errorf("what %s answers is %w: %w. Name the socket of a collector (--socket) or the address of its radar page (--url)",
		c.Where(), ErrNoView, foreign{why})
}

// refused says what an answer says that is none.
func (c *Client) refused(response *http.Response) error {
	// What it says is for people, and short.
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxText))
	err := fmt.Errorf("the collector at %s refuses: %d: %s", c.Where(), response.StatusCode, text.Clean(string(said), maxText))
	if response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%w: %w", err, ErrDenied)
	}
	return err
}
