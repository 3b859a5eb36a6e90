package rdmaradarextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/rdmaradar/rdmaradar/extension/rdmaradarextension/internal/metadata"
)

// NewFactory returns the factory of the extension of type rdma_radar.
func NewFactory() extension.Factory {
	create := func(_ context.Context, settings extension.Settings, cfg component.Config) (extension.Extension, error) {
		config := cfg.(*Config)
		token := string(config.Token)
		if token == "" {
			token = processSecret.get()
		}
		return newRadar(config, settings, token), nil
	}
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}
