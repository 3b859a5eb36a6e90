// Package radarclient asks a running collector for what its radar shows, over the
// socket of the extension rdma_radar or at the address of its page.
package radarclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/text"
)

const (
	// answerLimit is how long a whole view may take to come. The collector may wait for a
	// process that does not let itself be looked at.
	answerLimit = 10 * time.Second
	// maxView is the most bytes of a view; one of 30,000 queues has 10 MiB.
	maxView = 128 << 20
	// maxHead is the most bytes of a view before its queues, which tell whether it is one.
	maxHead = 64 << 10
)

var (
	// ErrNotRunning is wrapped where no collector answers.
	ErrNotRunning = errors.New("no collector answers")
	// ErrDenied is wrapped where one may not be asked.
	ErrDenied = errors.New("permission denied")
	// ErrNoView is wrapped where somebody else answers.
	ErrNoView = errors.New("no view of a radar")
)

// Client asks one collector. It is safe for concurrent use.
type Client struct {
	// base is the address of the page, with a slash at its end.
	base *url.URL
	// socket is the path of the socket, "" for an address.
	socket string
	http   *http.Client
	pid    atomic.Int64
}

// OnSocket returns a Client of the collector that serves a socket.
func OnSocket(path string) *Client {
	c := &Client{base: &url.URL{Scheme: "http", Host: "localhost", Path: "/"}, socket: path}
	dialer := &net.Dialer{}
	c.http = &http.Client{CheckRedirect: refuseRedirect, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			connection, err := dialer.DialContext(ctx, "unix", path)
			if err == nil {
				c.pid.Store(int64(peerOf(connection)))
			}
			return connection, err
		},
	}}
	return c
}

// AtURL returns a Client of the collector whose page has an address, which the log of
// the collector tells with its token.
func AtURL(address string) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a radar page: give the one that the log of the collector tells, such as http://127.0.0.1:55690/TOKEN/",
			text.Clean(address, maxText))
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	return &Client{base: base, http: &http.Client{
		CheckRedirect: refuseRedirect, Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
	}}, nil
}

// refuseRedirect keeps the token from being sent elsewhere.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Where names what is asked: a path, or an address without its token.
func (c *Client) Where() string {
	if c.socket != "" {
		return c.socket
	}
	return c.base.Scheme + "://" + c.base.Host
}

// PID is the process that answered last on the socket; 0 when it is not known, or in
// another PID namespace.
func (c *Client) PID() int { return int(c.pid.Load()) }

// View returns the state of the node at this moment. Errors wrap ErrNotRunning or
// ErrDenied where that is what they say.
func (c *Client) View(ctx context.Context) (radar.View, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	response, err := c.get(ctx, "view")
	if err != nil {
		return radar.View{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxView))
	if err != nil {
		return radar.View{}, fmt.Errorf("read the view of %s: %w", c.Where(), foreign{err})
	}
	return c.decode(body)
}

// Tracing returns how far tracing has come, of which the first bytes of a view tell: the
// rest, which may be large, is not read. Errors are as those of View.
func (c *Client) Tracing(ctx context.Context) (radar.Tracing, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	response, err := c.get(ctx, "view")
	if err != nil {
		return radar.Tracing{}, err
	}
	defer func() { _ = response.Body.Close() }()
	tracing, err := tracingOf(io.LimitReader(response.Body, maxHead))
	switch {
	case ctx.Err() != nil:
		return radar.Tracing{}, c.explain(ctx.Err())
	case err != nil:
		return radar.Tracing{}, c.noView(err)
	}
	clean(&tracing)
	return tracing, nil
}

func (c *Client) decode(body []byte) (radar.View, error) {
	var view radar.View
	if err := json.Unmarshal(body, &view); err != nil {
		return radar.View{}, c.noView(err)
	}
	if err := checkPhase(view.Tracing.Phase); err != nil {
		return radar.View{}, c.noView(err)
	}
	clean(&view)
	return view, nil
}

// get asks for a part of the page.
func (c *Client) get(ctx context.Context, name string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(name).String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Where(), err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.explain(err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(c.refused(response), response.Body.Close())
	}
	return response, nil
}
