package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
)

func (s *System) checkCollector(context.Context) []Finding {
	return judgeCollector(s.view())
}

// judgeCollector says what a collector that runs says of itself.
func judgeCollector(view radar.View, err error) []Finding {
	switch {
	case errors.Is(err, radarclient.ErrDenied):
		return []Finding{{Level: Unknown, What: err.Error()}}
	case errors.Is(err, radarclient.ErrNotRunning):
		return []Finding{{Level: Note, What: err.Error(), Means: "What the collector itself says of this node is not in this report."}}
	case err != nil:
		return []Finding{{Level: Warning, What: err.Error()}}
	}
	switch view.Tracing.Phase {
	case radar.Absent:
		return []Finding{{
			Level: Warning, What: "the collector runs without an rdma receiver", Means: "Nothing is traced.",
			Do: "Name the receiver rdma in one of its pipelines.",
		}}
	case radar.Starting:
		return []Finding{{Level: Note, What: "the collector is loading and attaching its programs", Do: "Look again in some seconds."}}
	case radar.Failed:
		return []Finding{{Level: Problem, What: "the collector runs and traces nothing: " + view.Tracing.Reason}}
	}
	findings := []Finding{{What: "the collector traces " + plural(view.Now.Queues, "queue", "queues") + modes(view.Probes)}}
	if view.Tracing.Phase == radar.Impaired {
		findings = append(findings, Finding{Level: Warning, What: "the collector does not see everything: " + view.Tracing.Reason})
	}
	return append(findings, judgeBooks(&view)...)
}

// modes tells how the functions that are used are observed.
func modes(probes []radar.Probe) string {
	functions := map[string]int{}
	windows := 1.0
	for _, p := range probes {
		if p.Used && p.Mode != "control" {
			functions[p.Mode] += len(p.Functions)
			windows = min(windows, p.Observed)
		}
	}
	if len(functions) == 0 {
		return ""
	}
	var parts []string
	for mode, n := range functions {
		parts = append(parts, fmt.Sprintf("%d in the mode %s", n, mode))
	}
	slices.Sort(parts)
	text := ", by functions " + strings.Join(parts, ", ")
	if windows < 0.995 {
		text += fmt.Sprintf(", the least for %.0f %% of the time", 100*windows)
	}
	return text
}

// judgeBooks says what could not be followed.
func judgeBooks(view *radar.View) []Finding {
	var findings []Finding
	if n := view.Now.Untimed; n > 0 {
		findings = append(findings, Finding{
			Level: Note, What: plural(n, "queue is", "queues are") + " counted and not timed",
			Means: "They existed before the collector and have not paused yet, or something of them was missed.",
		})
	}
	if n := view.Books.UntrackedQueues; n > 0 {
		findings = append(findings, Finding{
			Level: Warning, What: plural(int(n), "queue finds no room and is", "queues find no room and are") + " not seen",
			Means: "At most 4,096 queues are followed.", Do: "Leave some out with processes or devices of the receiver.",
		})
	}
	if lost := largest(view.Books.Lost, view.Books.Losses); lost != "" {
		findings = append(findings, Finding{
			Level: Note, What: "what the tracer could not follow since its start: " + lost,
			Means: "It is counted here and missing elsewhere. Some is usual when a collector or a job starts.",
		})
	}
	return findings
}

// noLoss is for what the books have beside losses: slow requests that are usual or that
// are counted and not told one by one, and libraries that two paths lead to.
func noLoss(reason string) bool {
	return reason == "usual_for_its_kind" || reason == "below_reporting_floor" || reason == "duplicate_probe"
}

// largest are the highest counts, by reason.
func largest(counts ...map[string]uint64) string {
	const most = 4
	all := map[string]uint64{}
	for _, some := range counts {
		for reason, n := range some {
			if !noLoss(reason) {
				all[reason] += n
			}
		}
	}
	reasons := make([]string, 0, len(all))
	for reason := range all {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, reason := range reasons[:min(len(reasons), most)] {
		parts = append(parts, fmt.Sprintf("%s %d", reason, all[reason]))
	}
	return strings.Join(parts, ", ")
}
