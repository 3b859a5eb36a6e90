package rdmaradarextension

import (
	"crypto/subtle"
	"embed"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed web
var web embed.FS

// securityPolicy lets the page load what comes from here and nothing else. No
// text becomes markup or script: there are no trusted types.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard lets through who names this host, knows the token and only reads. It comes before
// what the collector puts around a handler: nothing of a request is decoded for others.
type guard struct {
	token string
	hosts map[string]bool
	next  http.Handler
}

// newPages returns the page, its view and its stream.
func newPages(s *source) http.Handler {
	files, err := fs.Sub(web, "web")
	if err != nil {
		// The directory is a part of this package.
		panic(err)
	}
	pages := http.NewServeMux()
	pages.Handle("/", http.FileServerFS(files))
	pages.HandleFunc("/view", s.serveView)
	pages.HandleFunc("/events", s.serveEvents)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header()) // Once more: response_headers are none of them.
		pages.ServeHTTP(w, r)
	})
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	switch {
	case !g.hosts[hostOf(r.Host)]:
		// A page of another site that has its name lead here would otherwise read this
		// one (DNS rebinding).
		refuse(w, r, "this name is not one of the radar page: use localhost, or add it to allowed_hosts of rdma_radar", http.StatusMisdirectedRequest)
	case !g.hasToken(r.URL.Path):
		refuse(w, r, "the address of the radar page, with its token, is in the log of the collector", http.StatusForbidden)
	case !onlyReads(r.Method):
		refuseMethod(w, r)
	case r.URL.Path == "/"+g.token:
		http.Redirect(w, r, "/"+g.token+"/", http.StatusMovedPermanently)
	case !isPlain(r.URL):
		// It would be redirected to where it leads without the token.
		http.NotFound(w, r)
	case r.ContentLength != 0:
		refuse(w, r, "the radar page takes no body", http.StatusRequestEntityTooLarge)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// refuse ends the connection as well: there are only so many, and anybody on the node may
// hold them. A server that closes would still wait for a body, or for the most of it.
func refuse(w http.ResponseWriter, r *http.Request, why string, status int) {
	if r.ContentLength != 0 {
		// An error is of a writer that has no connection: there is nothing to wait for.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}
	w.Header().Set("Connection", "close")
	http.Error(w, why, status)
}

// isPlain reports whether a path is the shortest that leads where it does.
func isPlain(u *url.URL) bool {
	return u.RawPath == "" && (path.Clean(u.Path) == u.Path || path.Clean(u.Path)+"/" == u.Path)
}

func onlyReads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func refuseMethod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	refuse(w, r, "the radar page can be read, not changed", http.StatusMethodNotAllowed)
}

// hasToken compares in a time that does not tell how much of the token was right.
func (g *guard) hasToken(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return subtle.ConstantTimeCompare([]byte(first), []byte(g.token)) == 1
}

func setSecurityHeaders(to http.Header) {
	to.Set("Content-Security-Policy", securityPolicy)
	to.Set("Cross-Origin-Opener-Policy", "same-origin")
	to.Set("Cross-Origin-Resource-Policy", "same-origin")
	to.Set("Referrer-Policy", "no-referrer")
	to.Set("X-Content-Type-Options", "nosniff")
	to.Set("Cache-Control", "no-store")
}

// hostOf is the name or address in a Host header, in lower case, without port.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return canonical(host)
}

// canonical writes a name or address as browsers do.
func canonical(host string) string {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.String()
	}
	return strings.ToLower(host)
}

// hostsOf are the names by which the page may be asked for. A port does not matter:
// that of a tunnel is another one.
func hostsOf(cfg *Config) map[string]bool {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	own, _, _ := net.SplitHostPort(cfg.HTTP.NetAddr.Endpoint)
	if ip := net.ParseIP(own); own != "" && (ip == nil || !ip.IsUnspecified()) {
		hosts[canonical(own)] = true
	}
	for _, host := range cfg.AllowedHosts {
		hosts[canonical(host)] = true
	}
	return hosts
}
