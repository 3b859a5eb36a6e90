package doctor

import (
	"context"
	"errors"

	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// checkTracing tries only where no collector does: loading the programs takes time and
// memory that a node with jobs has better uses for.
func (s *System) checkTracing(ctx context.Context) []Finding {
	view, err := s.view()
	switch {
	case errors.Is(err, radarclient.ErrNotRunning):
		return judgeTrial(s.tries(ctx))
	case err != nil:
		return []Finding{{Level: Unknown, What: "it was not tried to trace, since there may be a collector, which does not tell"}}
	case view.Tracing.Phase == radar.Running || view.Tracing.Phase == radar.Impaired:
		return []Finding{{What: "the collector traces, so that probes are not tried once more"}}
	case view.Tracing.Phase == radar.Starting:
		return []Finding{{Level: Unknown, What: "it was not tried to trace, since the collector is about to", Do: "Look again in some seconds."}}
	default:
		return judgeTrial(s.tries(ctx))
	}
}

// judgeTrial says what came of trying to trace.
func judgeTrial(trial tracer.Trial, err error) []Finding {
	denied, lacking := (*tracer.CapabilityError)(nil), (*tracer.KernelError)(nil)
	switch {
	case errors.As(err, &denied):
		return []Finding{{
			Level: Unknown, What: "it was not tried to trace: " + err.Error(),
			Do: "Run this as root to have the programs loaded and tried on a child of its own.",
		}}
	case errors.As(err, &lacking):
		return []Finding{{Level: Problem, What: "tracing does not start: " + err.Error(), Do: "Boot a kernel that has it."}}
	case err != nil:
		return []Finding{{Level: Problem, What: "tracing does not start: " + err.Error()}}
	}
	by := "many probes by one link (uprobe multi)"
	if trial.Link != "multi" {
		by = "each probe by a perf event, as on kernels before 6.6"
	}
	findings := []Finding{{What: "tracing works: the programs load, and a child with a seccomp filter lives with probes on it; " + by}}
	if trial.Core != nil {
		findings = append(findings, Finding{
			Level: Warning, What: trial.Core.Error(),
			Means: "CQ numbers, addresses, asynchronous events and consumers in the kernel are not seen.",
		})
	}
	return findings
}
