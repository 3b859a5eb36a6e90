package packaging

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// searchPath is where the prolog looks for programs: slurmd tells it nothing of that.
const searchPath = "\nexport PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"

// prolog runs the prolog as slurmd does on an idle node, see prologOn.
func prolog(t *testing.T, check string) (status int, said, drained string) {
	t.Helper()
	return prologOn(t, controller{show: shown("IDLE")}, check)
}

// unfit is the check of a node that is not fit.
const unfit = "echo 'not healthy: mlx5_3: port 1 is DOWN'; exit 1"

// shown is a script that prints what scontrol shows of a node in some state.
func shown(state string) string {
	return "echo 'NodeName=gpu-017 CPUAlloc=0 State=" + state + " ThreadsPerCore=2 Comment=was State=IDLE+DRAIN in May Reason=DRAIN'"
}

// controller is what scontrol does, as scripts, to show a node and to change it.
type controller struct{ show, update string }

// prologOn runs it beside a controller, with a check of the node that is a script too, ""
// for none. It returns the status, what the log has, and the arguments that scontrol was
// given to change something.
func prologOn(t *testing.T, slurm controller, check string) (status int, said, drained string) {
	t.Helper()
	programs := t.TempDir()
	record := filepath.Join(programs, "drained")
	write(t, filepath.Join(programs, "scontrol"), `#!/bin/sh
case "$*" in
'--oneliner show node gpu-017') `+slurm.show+` ;;
update*) printf '%s\n' "$@" >`+record+"\n"+slurm.update+`
;;
*) exit 99 ;;
esac
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
	status, said, drained := prolog(t, unfit)
	assert.Equal(t, 1, status, "slurmd queues the job again")
	assert.Contains(t, said, "mlx5_3: port 1 is DOWN")
	assert.Equal(t, "update\nNodeName=gpu-017\nState=DRAIN\nReason=rdmaradar: not healthy: mlx5_3: port 1 is DOWN", drained)
}

// The prolog may be the HealthCheckProgram too, which runs every few minutes.
func TestPrologLeavesTheReasonOfANodeThatHasOne(t *testing.T) {
	t.Parallel()
	for _, state := range []string{
		"IDLE+DRAIN", "MIXED+DRAIN", "DRAINED*", "DRAINING", "DOWN", "DOWN*", "DOWN*+DRAIN", "IDLE*+DRAIN", "MIXED+FAIL", "FAILING*",
	} {
		status, said, drained := prologOn(t, controller{show: shown(state)}, unfit)
		assert.Equal(t, 1, status)
		assert.Contains(t, said, "mlx5_3: port 1 is DOWN")
		assert.Empty(t, drained, state)
	}
}

// A state may be like one that keeps a reason. Without the state the node is not fit all
// the same.
func TestPrologDrainsInAllOtherStates(t *testing.T) {
	t.Parallel()
	for _, show := range []string{
		shown("IDLE"), shown("MIXED*"), shown("IDLE+POWER_DRAIN"), shown("IDLE+POWERING_DOWN"), shown("ALLOCATED+MAINTENANCE"),
		"exit 1", "echo 'Node gpu-017 not found'",
	} {
		status, said, drained := prologOn(t, controller{show: show}, unfit)
		assert.Equal(t, 1, status)
		assert.Contains(t, said, "mlx5_3: port 1 is DOWN")
		assert.Contains(t, drained, "State=DRAIN", show)
	}
}

func TestPrologDoesNotWaitForAController(t *testing.T) {
	t.Parallel()
	began := time.Now()
	status, said, _ := prologOn(t, controller{show: "exec sleep 60", update: "exec sleep 60"}, unfit)
	assert.Equal(t, 1, status)
	assert.Contains(t, said, "scontrol did not take the reason, status 137: not healthy: mlx5_3: port 1 is DOWN")
	assert.Less(t, time.Since(began), 30*time.Second)
}

// What a line holds is data: it does not become more lines, or words of a command.
func TestPrologPassesTheReasonOn(t *testing.T) {
	t.Parallel()
	_, _, drained := prolog(t, `printf 'not healthy: a $(touch /tmp/x) "b" \033[1m; c\nsecond\n'; exit 1`)
	assert.Equal(t, "Reason=rdmaradar: not healthy: a $(touch /tmp/x) \"b\"  [1m; c", drained[strings.Index(drained, "Reason="):])
	_, _, drained = prolog(t, `printf 'not healthy: '; printf 'x%.0s' $(seq 1000); echo; exit 1`)
	assert.Len(t, drained[strings.Index(drained, "Reason="):], len("Reason=rdmaradar: ")+200)
}

// The log has why the check saw nothing, which is all that there is to find out by.
func TestPrologTellsWhyNothingWasSeen(t *testing.T) {
	t.Parallel()
	const why = "rdmaradar: nothing was seen of this node: no sysfs is mounted at /sys"
	status, said, drained := prolog(t, "echo '"+why+"' >&2; exit 2")
	assert.Zero(t, status)
	assert.Equal(t, why+"\nrdmaradar: nothing was seen of this node, and the job starts\n", said)
	assert.Empty(t, drained)
	_, said, drained = prolog(t, "echo 'what is odd' >&2; "+unfit)
	assert.Contains(t, said, "what is odd\n")
	assert.Contains(t, drained, "Reason=rdmaradar: not healthy: mlx5_3: port 1 is DOWN")
}

// A fault of the check is no fault of the node: it must not drain a cluster.
func TestPrologLetsJobsStartWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	const seen, ran, ended = "nothing was seen of this node", "the check of this node could not run, status ", "the check of this node did not end within 5 s"
	for name, test := range map[string]struct{ check, says string }{
		"it is not installed":      {"", ran + "127"},
		"it sees nothing":          {"exit 2", seen},
		"it crashes later":         {"echo 'healthy: 8 devices'; kill -SEGV $$", ran + "139"},
		"it is called wrongly":     {"echo 'Usage: '; exit 64", ran + "64"},
		"it fails without a line":  {"echo 'no such thing' >&2; exit 1", ran + "1"},
		"half a line":              {"printf 'no such thing'; exit 1", ran + "1"},
		"it hangs":                 {"exec sleep 60", ended},
		"it hangs after a line":    {"echo 'not healthy: looking'; exec sleep 60", ended},
		"what it started hangs on": {"sleep 60 & wait", ended},
		// One that a driver holds is not even ended by KILL, and the other one waits for it.
		"it is held":              {"p=$PPID; setsid sh -c \"sleep 40; kill -KILL $p\" & kill -STOP $p; exec sleep 40", ended},
		"what it started is left": {"setsid sleep 40 & exit 2", seen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			status, said, drained := prolog(t, test.check)
			// slurmd reads its log until nobody has it open.
			assert.Less(t, time.Since(began), 30*time.Second)
			assert.Zero(t, status)
			assert.Regexp(t, `(^|\n)rdmaradar: `+test.says+`, and the job starts\n$`, said)
			assert.Empty(t, drained)
		})
	}
}
