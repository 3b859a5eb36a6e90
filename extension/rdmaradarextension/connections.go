package rdmaradarextension

import (
	"net"
	"net/http"
	"sync/atomic"
)

// Every user of the node can connect, and the agent's memory has a bound that systemd
// enforces: what is held for those who have shown no token is small. There are no bodies.
const (
	// maxConnections are the open ones of a server: browsers take six for a page.
	maxConnections = 256
	// maxHeader is the most bytes of the header of a request.
	maxHeader = 32 << 10
)

// bound has a server refuse connections over maxConnections and headers over maxHeader.
func bound(server *http.Server) {
	var open atomic.Int64
	server.MaxHeaderBytes = maxHeader
	server.ConnState = func(connection net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > maxConnections {
				_ = connection.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}
