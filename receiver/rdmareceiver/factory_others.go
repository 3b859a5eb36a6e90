//go:build !linux

package rdmareceiver

import (
	"context"
	"fmt"
	"runtime"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// NewFactory returns a factory that creates nothing: there is eBPF on Linux
// only. It exists so that collectors that carry the receiver build everywhere.
func NewFactory() receiver.Factory {
	err := fmt.Errorf("the rdma receiver needs Linux, and this is %s: remove it from the pipelines", runtime.GOOS)
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithTraces(func(context.Context, receiver.Settings, component.Config, consumer.Traces) (receiver.Traces, error) {
			return nil, err
		}, metadata.TracesStability),
		receiver.WithMetrics(func(context.Context, receiver.Settings, component.Config, consumer.Metrics) (receiver.Metrics, error) {
			return nil, err
		}, metadata.MetricsStability),
		receiver.WithLogs(func(context.Context, receiver.Settings, component.Config, consumer.Logs) (receiver.Logs, error) {
			return nil, err
		}, metadata.LogsStability),
	)
}
