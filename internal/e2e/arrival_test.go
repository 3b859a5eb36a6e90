//go:build backends

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// Both backends run, and know of nothing yet.
func TestBackendsRun(t *testing.T) {
	testbed.KeepThread(t)
	prometheus := backend.StartPrometheus(t)
	jaeger := backend.StartJaeger(t)
	assert.Equal(t, float64(1), float64(prometheus.Query(t, "vector(1)")[0].Value))
	assert.Empty(t, jaeger.Traces(t, "nobody", 10))
	_, found := jaeger.Trace(t, "0123456789abcdef0123456789abcdef")
	assert.False(t, found)
}
