// Package rdmareceiver is the OpenTelemetry Collector receiver of type rdma.
// It turns what the tracer measures of RDMA work requests into metrics, traces
// and logs. It holds configuration, lifecycle and the building of telemetry;
// the measuring is done behind the interface engine.
package rdmareceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
