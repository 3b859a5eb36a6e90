// Package rdmaradarextension is the OpenTelemetry Collector extension of type
// rdma_radar: a page that shows, live, which RDMA queues of this node are slow,
// since when and why. The rdma receiver finds the extension and feeds it; without
// one the page says so.
package rdmaradarextension

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
