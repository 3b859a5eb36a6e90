package rdmaradarextension

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/rdmaradar/rdmaradar/extension/rdmaradarextension/internal/metadata"
)

// NewFactory returns the factory of the extension of type rdma_radar.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

// create makes an extension with a token of its own, where none is configured. Each reload
// of the configuration makes another: while nobody listens, anybody on the node may, and
// is told the token by a page that is open.
func create(_ context.Context, settings extension.Settings, cfg component.Config) (extension.Extension, error) {
	config := cfg.(*Config)
	token := string(config.Token)
	if token == "" {
		token = rand.Text()
	}
	return newRadar(config, settings, token), nil
}
