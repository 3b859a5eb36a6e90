package rdmaradarextension

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// docs/radar.md prints every key that is the extension's own, the endpoint, and their
// defaults. The other keys of the server are the collector's.
func TestDocumentPrintsEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/radar.md")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), "```yaml\n")
	require.True(t, ok)
	block, _, ok := strings.Cut(after, "```")
	require.True(t, ok)
	path := filepath.Join(t.TempDir(), "printed.yaml")
	require.NoError(t, os.WriteFile(path, []byte(block), 0o600))
	conf, err := confmaptest.LoadConf(path)
	require.NoError(t, err)
	printed, err := conf.Sub("extensions::rdma_radar")
	require.NoError(t, err)

	keys := map[string]any{"endpoint": nil}
	for field := range reflect.TypeFor[Config]().Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ","); key != "" {
			keys[key] = nil
		}
	}
	got := printed.ToStringMap()
	for key := range keys {
		assert.Contains(t, got, key)
	}
	assert.Len(t, got, len(keys))
	set := createDefaultConfig().(*Config)
	require.NoError(t, printed.Unmarshal(set))
	if len(set.AllowedHosts) == 0 {
		// Printed, an empty list and none are the same.
		set.AllowedHosts = nil
	}
	assert.Equal(t, createDefaultConfig(), set)
}
