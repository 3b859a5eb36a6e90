package tracer

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// spanMapPath is where OpenTelemetry eBPF Instrumentation pins the map of the
// span that each thread is in (its devdocs/trace-profile-correlation.md).
const spanMapPath = "/sys/fs/bpf/otel/traces_ctx_v1"

// shareSpans lets the programs look up application spans in the map that
// another tool fills. Without one there is nothing to look up, and the map of
// our own has the smallest size there is.
func shareSpans(spec *ebpf.CollectionSpec, cfg Config) (map[string]*ebpf.Map, error) {
	own := spec.Maps[bpf.TrackerMapTracesCtxV1]
	shared, err := openSpans(rooted(cfg.Root, spanMapPath), own)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			cfg.Logger.Info("application spans are not linked", "error", err)
		}
		own.MaxEntries = 1
		return nil, nil
	}
	own.MaxEntries = shared.MaxEntries()
	own.Flags = shared.Flags()
	if err := spec.Variables["have_trace_contexts"].Set(true); err != nil {
		return nil, errors.Join(err, shared.Close())
	}
	return map[string]*ebpf.Map{bpf.TrackerMapTracesCtxV1: shared}, nil
}

func openSpans(path string, like *ebpf.MapSpec) (*ebpf.Map, error) {
	shared, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("opening the map of application spans at %s: %w", path, err)
	}
	if shared.Type() != like.Type || shared.KeySize() != like.KeySize || shared.ValueSize() != like.ValueSize {
		err := fmt.Errorf("the map at %s is a %v of %d to %d bytes, not a %v of %d to %d", path,
			shared.Type(), shared.KeySize(), shared.ValueSize(), like.Type, like.KeySize, like.ValueSize)
		return nil, errors.Join(err, shared.Close())
	}
	return shared, nil
}
