//go:build backends

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const slurmService = "training"

// slurmTask is the environment of a task that srun started.
func slurmTask() []string {
	return []string{
		"OTEL_SERVICE_NAME=" + slurmService, "SLURM_JOB_ID=81512", "SLURM_STEP_ID=7",
		"SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_STEP_NUM_TASKS=8",
	}
}

// described is a resource as the JSON of all three signals has it.
type described struct {
	Resource struct {
		Attributes []struct {
			Key   string
			Value struct{ StringValue string }
		}
	}
}

func (d described) attributes() map[string]string {
	all := map[string]string{}
	for _, a := range d.Resource.Attributes {
		all[a.Key] = a.Value.StringValue
	}
	return all
}

// assertSlurm checks that whatever is of the task has its job and step, in each of the
// signals, and its rank where that is of one process.
func assertSlurm(t *testing.T, requests []string) {
	t.Helper()
	found := map[string]int{}
	for _, request := range requests {
		var signals map[string][]described
		require.NoError(t, json.Unmarshal([]byte(request), &signals))
		for signal, resources := range signals {
			for _, resource := range resources {
				attributes := resource.attributes()
				if attributes["service.name"] != slurmService {
					continue
				}
				found[signal]++
				assert.Equal(t, "81512", attributes["slurm.job.id"], signal)
				assert.Equal(t, "7", attributes["slurm.step.id"], signal)
				if signal != "resourceMetrics" {
					assert.Positive(t, strings.Count(request, `{"key":"rdma.rank","value":{"intValue":"3"}}`), signal)
				}
			}
		}
	}
	for _, signal := range []string{"resourceSpans", "resourceMetrics", "resourceLogs"} {
		assert.Positive(t, found[signal], "%s of the task", signal)
	}
}
