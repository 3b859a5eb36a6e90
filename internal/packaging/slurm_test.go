package packaging

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// searchPath is where the prolog looks for programs: slurmd tells it nothing of that.
const searchPath = "\nexport PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"

// prolog runs the prolog as slurmd does on an idle node, see prologOn.
func prolog(t *testing.T, check string) (status int, said, drained string) {
	t.Helper()
	return prologOn(t, "IDLE", check)
}

// prologOn runs it on a node in some state, with a check of the node that is a script of
// the test's, "" for none. It returns the status, what the log has, and the arguments
// that scontrol was given to change something.
func prologOn(t *testing.T, state, check string) (status int, said, drained string) {
	t.Helper()
	programs := t.TempDir()
	record := filepath.Join(programs, "drained")
	write(t, filepath.Join(programs, "scontrol"), `#!/bin/sh
[ "$1" = update ] || { [ "$*" = '--oneliner show node gpu-017' ] || exit 99; echo 'NodeName=gpu-017 CPUAlloc=0 State=`+state+` ThreadsPerCore=2 Reason=DRAIN'; exit; }
printf '%s\n' "$@" >`+record+`
`, 0o755)
	if check != "" {
		write(t, filepath.Join(programs, "rdmaradar"), "#!/bin/sh\n[ \"$*\" = 'doctor --node-health' ] || exit 99\n"+check+"\n", 0o755)
	}
	text, err := os.ReadFile(repository + "/config/slurm/prolog.sh")
	require.NoError(t, err)
	require.Contains(t, string(text), searchPath)
	script := filepath.Join(programs, "prolog.sh")
	write(t, script, strings.Replace(string(text), searchPath, "\nexport PATH="+programs+":/usr/bin:/bin\n", 1), 0o755)
	command := exec.CommandContext(t.Context(), script)
	command.Env = []string{"SLURMD_NODENAME=gpu-017", "SLURM_JOB_ID=815", "LC_ALL=C"}
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, err = exit.ExitCode(), nil
	}
	require.NoError(t, err)
	arguments, err := os.ReadFile(record)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return status, string(out), strings.TrimSpace(string(arguments))
}

func TestPrologOfAHealthyNode(t *testing.T) {
	t.Parallel()
	status, said, drained := prolog(t, "echo 'healthy: 8 devices'")
	assert.Zero(t, status)
	assert.Empty(t, said)
	assert.Empty(t, drained)
}

func TestPrologDrainsANodeThatIsNotFit(t *testing.T) {
	t.Parallel()
	status, said, drained := prolog(t, "echo 'mlx5_3: port 1 is DOWN'; exit 1")
	assert.Equal(t, 1, status, "slurmd queues the job again")
	assert.Contains(t, said, "mlx5_3: port 1 is DOWN")
	assert.Equal(t, "update\nNodeName=gpu-017\nState=DRAIN\nReason=rdmaradar: mlx5_3: port 1 is DOWN", drained)
}

// The prolog may be the HealthCheckProgram too, which runs every few minutes.
func TestPrologLeavesTheReasonOfADrainedNode(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"IDLE+DRAIN", "MIXED+DRAIN", "DRAINED*"} {
		status, said, drained := prologOn(t, state, "echo 'mlx5_3: port 1 is DOWN'; exit 1")
		assert.Equal(t, 1, status)
		assert.Contains(t, said, "mlx5_3: port 1 is DOWN")
		assert.Empty(t, drained, state)
	}
}

// What a line holds is data: it does not become more lines, or words of a command.
func TestPrologPassesTheReasonOn(t *testing.T) {
	t.Parallel()
	_, _, drained := prolog(t, `printf 'a $(touch /tmp/x) "b" \033[1m; c\nsecond\n'; exit 1`)
	assert.Equal(t, "Reason=rdmaradar: a $(touch /tmp/x) \"b\"  [1m; c", drained[strings.Index(drained, "Reason="):])
	_, _, drained = prolog(t, `printf 'x%.0s' $(seq 1000); echo; exit 1`)
	assert.Len(t, drained[strings.Index(drained, "Reason="):], len("Reason=rdmaradar: ")+200)
}

// A fault of the check is no fault of the node: it must not drain a cluster.
func TestPrologLetsJobsStartWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]string{
		"it is not installed":      "",
		"it crashes":               "exit 2",
		"it crashes later":         "echo 'healthy: 8 devices'; kill -SEGV $$",
		"it is called wrongly":     "echo 'Usage: '; exit 64",
		"it hangs":                 "exec sleep 60",
		"it hangs after a line":    "echo 'looking'; exec sleep 60",
		"what it started hangs on": "sleep 60 & wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, said, drained := prolog(t, check)
			assert.Zero(t, status)
			assert.Regexp(t, `^rdmaradar: the check of this node [^\n]+\n$`, said)
			assert.Empty(t, drained)
		})
	}
}
