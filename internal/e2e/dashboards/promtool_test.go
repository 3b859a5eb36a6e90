//go:build backends

package dashboards

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// Each alert fires on what it is for, and neither on healthy traffic nor on a blip:
// the cases are in config/prometheus/tests.
func TestRulesByPromtool(t *testing.T) {
	promtool := testbed.Built(t, "tools/promtool", "backends")
	for _, arguments := range [][]string{
		{"check", "config", "../../../config/prometheus/prometheus.yml"},
		{"check", "rules", "--lint=all", "--lint-fatal", recording, alerts},
		{"test", "rules", "../../../config/prometheus/tests/alerts.yaml", "../../../config/prometheus/tests/gone.yaml"},
	} {
		t.Run(arguments[0]+" "+arguments[1], func(t *testing.T) {
			output, err := exec.CommandContext(t.Context(), promtool, arguments...).CombinedOutput()
			assert.NoError(t, err, "%s", output)
		})
	}
}
