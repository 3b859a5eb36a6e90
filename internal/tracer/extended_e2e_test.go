//go:build e2e

package tracer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// learnExtended lets the tracer see objects of the extended verbs before a
// scenario that uses them: it probes their functions when they first turn up,
// and the simulator's queues are ready within microseconds.
func learnExtended(t *testing.T, tr *tracer.Tracer, scenario string) {
	t.Helper()
	if !strings.HasPrefix(scenario, "ext-") {
		return
	}
	w := startWorkload(t, "ext-both", "--seconds", "0.3")
	w.waitReady()
	w.release()
	w.wait()
	for _, probe := range snapshot(t, tr).Probes {
		if slices.Contains(probe.Functions, "ibv_qp_ex") && slices.Contains(probe.Functions, "ibv_cq_ex") {
			return
		}
	}
	t.Fatalf("the functions of the extended verbs are not probed: %+v", snapshot(t, tr).Probes)
}
