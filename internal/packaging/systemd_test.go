package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const unit = repository + "/config/systemd/otelcol-rdma.service"

// submatch returns what the one group of a pattern matched.
func submatch(t *testing.T, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, found, "%s in:\n%s", pattern, text)
	return found[1]
}

// The documents say how exposed the service is, by which version of systemd: each
// weighs differently. With any, it is well below what systemd calls medium, 5.
func TestUnitIsAsConfinedAsDocumented(t *testing.T) {
	said := run(t, "systemd-analyze", "security", "--offline=yes", "--no-pager", unit)
	exposure := submatch(t, `Overall exposure level for otelcol-rdma.service: ([0-9.]+)`, said)
	version := submatch(t, `^systemd ([0-9]+)`, run(t, "systemd-analyze", "--version"))
	number, err := strconv.ParseFloat(exposure, 64)
	require.NoError(t, err)
	assert.Less(t, number, 3.0)

	docs, err := os.ReadFile(repository + "/docs/rollout.md")
	require.NoError(t, err)
	documented := submatch(t, `systemd-analyze security\x60 of systemd ([0-9]+) `, string(docs))
	if version == documented {
		assert.Equal(t, submatch(t, `gives it ([0-9.]+) of 10`, string(docs)), exposure)
	}
}

// A misspelt key is only a warning to systemd.
func TestUnitHasNoUnknownKeys(t *testing.T) {
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	// That the program is not installed here is no fault of the unit.
	path := filepath.Join(t.TempDir(), "otelcol-rdma.service")
	write(t, path, strings.ReplaceAll(string(text), "/usr/bin/otelcol-rdma", "/bin/true"), 0o644)
	assert.Empty(t, run(t, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path))
}

// The manifests and the unit grant the same.
func TestUnitGrantsTheCapabilities(t *testing.T) {
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	var want []string
	for _, capability := range capabilities {
		want = append(want, "CAP_"+string(capability))
	}
	for _, key := range []string{"CapabilityBoundingSet", "AmbientCapabilities"} {
		assert.Equal(t, want, strings.Fields(submatch(t, `(?m)^`+key+`=(.*)$`, string(text))), key)
	}
}

func TestGeneratorKnowsOldKernels(t *testing.T) {
	for release, old := range map[string]bool{
		"5.15.0-130-generic": true, "6.1.0-50-amd64": true, "6.5": true, "6.5-rc1": true, "6.5.13": true,
		"6.6.0": false, "6.6": false, "6.12.95+deb12-amd64": false, "6.18.0": false, "7.3.4": false, "10.0.1": false,
	} {
		t.Run(release, func(t *testing.T) {
			programs, out := t.TempDir(), t.TempDir()
			write(t, filepath.Join(programs, "uname"), "#!/bin/sh\necho "+release+"\n", 0o755)
			command := exec.CommandContext(t.Context(), "sh", repository+"/config/systemd/otelcol-rdma.generator", out, out, out)
			command.Env = []string{"PATH=" + programs + ":/usr/bin:/bin"}
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
			made, err := os.ReadFile(filepath.Join(out, "otelcol-rdma.service.d/50-kernel.conf"))
			if !old {
				assert.True(t, os.IsNotExist(err), "%s", made)
				return
			}
			require.NoError(t, err)
			assert.Contains(t, string(made), "\n[Service]\nCapabilityBoundingSet=CAP_SYS_ADMIN\nAmbientCapabilities=CAP_SYS_ADMIN\n")
			assert.Contains(t, string(made), release)
		})
	}
}
