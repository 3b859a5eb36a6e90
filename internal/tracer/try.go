package tracer

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// Trial is what [Try] found out.
type Trial struct {
	// Link is how probes are attached: "multi" for many by one link, "perf_event" for each
	// by itself.
	Link string
	// Core is why the RDMA core in the kernel is not probed, nil when it is, or is not
	// loaded. Processes are traced without it.
	Core error
}

// Try says whether [Start] would trace, to this process on this machine. It loads the
// programs, attaches those that stand all the time, and probes a child of its own and,
// for a moment, the RDMA core where that is loaded: no program of anybody else. It takes
// a second of CPU time and the memory of the maps. Errors are those of Start.
func Try(ctx context.Context, cfg Config) (trial Trial, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return Trial{}, err
	}
	kind, err := preflight()
	if err != nil {
		return Trial{}, err
	}
	if err := CheckPIDNamespace(cfg.Root); err != nil {
		return Trial{}, err
	}
	side, err := load(ctx, cfg, kind)
	if err != nil {
		return Trial{}, err
	}
	defer func() { err = errors.Join(err, closeLinks(side.system), side.close()) }()
	if err := tryReturnProbe(side, kind); err != nil {
		return Trial{}, err
	}
	if err := side.attachSystem(); err != nil {
		return Trial{}, attachError(err, kind)
	}
	core := newResources(cfg, side)
	defer core.close()
	core.refresh(ctx)
	if err := ctx.Err(); err != nil {
		return Trial{}, fmt.Errorf("trying to trace: %w", err)
	}
	return Trial{Link: string(kind), Core: core.failure()}, nil
}

// WithoutSites says why a function of the data path is observed by entry and return,
// "" when it is observed at its sites, once those have agreed with both on live traffic.
func WithoutSites(set provider.SiteSet) string {
	var reason string
	if set.Function == provider.PollCQ {
		_, reason = usableSites(set)
	} else {
		_, reason = usableRefusals(set)
	}
	return reason
}
