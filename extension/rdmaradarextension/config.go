package rdmaradarextension

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

const (
	defaultEndpoint = "localhost:55690"
	// minToken is the least length of a token that is configured.
	minToken = 16
	// maxSocketPath is the longest path that a socket can have: sun_path of unix(7), with
	// the byte that ends it.
	maxSocketPath = 107
	// readLimit is how long a request may take to come in: anybody on the node may
	// begin one and not end it.
	readLimit = 10 * time.Second
)

// Config is the configuration of the extension. The default is complete.
type Config struct {
	// HTTP is the server: endpoint, tls, auth and whatever else confighttp has.
	// Default endpoint localhost:55690.
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// Token is the first part of the path of every URL, at least 16 letters,
	// digits, '-' and '_'. Default a random one for each process, which the log tells.
	Token configopaque.String `mapstructure:"token"`
	// AllowedHosts are names by which the page may be asked for besides those of the
	// loopback interface and that of the endpoint, without ports. Default none.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// Socket is the path of a socket that serves the same besides, without a token, to
	// the user and the group that the collector runs as, and to root: for `rdmaradar
	// top`. Default none.
	Socket string `mapstructure:"socket"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	server.ReadTimeout, server.ReadHeaderTimeout = readLimit, readLimit
	return &Config{HTTP: server}
}

// Unmarshal refuses keys that nobody knows. The server's own leaves them to what it is a
// part of, and that is all that would tell a misspelt "tls" or "auth" from none.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	type server confighttp.ServerConfig
	known := struct {
		Server       server              `mapstructure:",squash"`
		Token        configopaque.String `mapstructure:"token"`
		AllowedHosts []string            `mapstructure:"allowed_hosts"`
		Socket       string              `mapstructure:"socket"`
	}{}
	if err := conf.Unmarshal(&known); err != nil {
		return err
	}
	return conf.Unmarshal(c)
}

// Validate tells which key is wrong and what to do about it.
func (c *Config) Validate() error {
	if c.HTTP.NetAddr.Endpoint == "" {
		return fmt.Errorf("endpoint is empty: set it to an address such as %s", defaultEndpoint)
	}
	if c.onSocket() && !isSocketPath(c.HTTP.NetAddr.Endpoint) {
		return fmt.Errorf("endpoint is %q: with transport unix, set it to an absolute path of at most %d bytes", c.HTTP.NetAddr.Endpoint, maxSocketPath)
	}
	if c.onSocket() && c.HTTP.TLS.HasValue() {
		return errors.New("tls is set with transport unix, where nobody listens in: leave one of them out")
	}
	if !isStream(c.HTTP.NetAddr.Transport) {
		return fmt.Errorf("transport is %q: set it to tcp, tcp4, tcp6 or unix", c.HTTP.NetAddr.Transport)
	}
	if !c.onSocket() && !isAddress(c.HTTP.NetAddr.Endpoint) {
		return fmt.Errorf("endpoint is %q: set it to a host and a port up to 65535, without scheme, such as %s",
			c.HTTP.NetAddr.Endpoint, defaultEndpoint)
	}
	if token := string(c.Token); token != "" && !isToken(token) {
		return fmt.Errorf("token is too short or has other characters: set it to at least %d letters, digits, '-' and '_', "+
			"or leave it out for a random one", minToken)
	}
	for _, host := range c.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/:* ") && net.ParseIP(host) == nil {
			return fmt.Errorf("allowed_hosts has %q: set it to names or addresses without scheme and port, such as node-1.example.com", host)
		}
	}
	if c.Socket != "" && !isSocketPath(c.Socket) {
		return fmt.Errorf("socket is %q: set it to an absolute path of at most %d bytes, such as %s", c.Socket, maxSocketPath, radar.Socket)
	}
	return nil
}

// onSocket reports whether the endpoint is the path of a socket.
func (c *Config) onSocket() bool { return c.HTTP.NetAddr.Transport == confignet.TransportTypeUnix }

func isSocketPath(path string) bool { return filepath.IsAbs(path) && len(path) <= maxSocketPath }

// isStream reports whether HTTP can be served on a transport.
func isStream(transport confignet.TransportType) bool {
	switch transport {
	case "", confignet.TransportTypeTCP, confignet.TransportTypeTCP4, confignet.TransportTypeTCP6, confignet.TransportTypeUnix:
		return true
	default:
		return false
	}
}

// isAddress reports whether an endpoint is a host, which may be empty, and a port.
func isAddress(endpoint string) bool {
	_, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// isToken reports whether a token can be a part of a path as it is.
func isToken(token string) bool {
	if len(token) < minToken {
		return false
	}
	for _, char := range token {
		switch {
		case char >= 'a' && char <= 'z', char >= 'A' && char <= 'Z', char >= '0' && char <= '9', char == '-', char == '_':
		default:
			return false
		}
	}
	return true
}
