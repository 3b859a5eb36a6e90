package rdmaradarextension

import (
	"context"
	"crypto/rand"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/rdmaradar/rdmaradar/extension/rdmaradarextension/internal/metadata"
)

// NewFactory returns the factory of the extension of type rdma_radar.
func NewFactory() extension.Factory {
	// One token for all extensions of the factory, so that a page that is open
	// outlives a reload of the configuration.
	token := sync.OnceValue(rand.Text)
	create := func(_ context.Context, settings extension.Settings, cfg component.Config) (extension.Extension, error) {
		config := cfg.(*Config)
		secret := string(config.Token)
		if secret == "" {
			secret = token()
		}
		return newRadar(config, settings, secret), nil
	}
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}
