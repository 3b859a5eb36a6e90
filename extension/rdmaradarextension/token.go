package rdmaradarextension

import (
	"crypto/rand"
	"sync"
)

// secret is a random token.
type secret struct {
	mu    sync.Mutex
	token string
}

// processSecret is that of the process, so that a page that is open outlives a reload of
// the configuration: the collector makes its factories anew for each.
var processSecret secret

// get returns the token.
func (s *secret) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" {
		s.token = rand.Text()
	}
	return s.token
}

// renew makes another token, also for who asks later.
func (s *secret) renew() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = rand.Text()
	return s.token
}
