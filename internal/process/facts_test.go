package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secret stands in every environment of the tests and must never come out.
const secret = "planted-secret"

func number(n int) *int { return &n }

// The trees under testdata are composed from the formats of kernel, runtimes
// and launchers; the live processes below are real.
func TestFactsOfRecordedProcesses(t *testing.T) {
	boot := time.Unix(1767225600, 0)
	trace := TraceContext{
		TraceID: [16]byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c},
		SpanID:  [8]byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31},
		Flags:   1,
	}
	for _, test := range []struct {
		tree string
		want Facts
	}{
		{"torchrun-kubernetes", Facts{
			PID: 4242, StartTicks: 123456, StartTime: boot.Add(1234560 * time.Millisecond),
			Name: "pt_main_thread", Executable: "python3.11",
			ServiceName: "llama-pretrain", ServiceNamespace: "training",
			ContainerID: "05c48c82caff3be3d7f1e896981dd410e81487538936914f32b624d168de9db0",
			Placement:   Placement{Rank: number(13), LocalRank: number(5), WorldSize: number(64)},
			Trace:       trace,
		}},
		{"torchrun-kubernetes", Facts{
			PID: 4100, StartTicks: 100000, StartTime: boot.Add(1000 * time.Second),
			Name: "containerd-shim", Executable: "containerd-shim-runc-v2", ServiceName: "containerd-shim-runc-v2",
		}},
		{"slurm-v2-pmix", Facts{
			PID: 777, StartTicks: 5000, StartTime: boot.Add(50 * time.Second),
			Name: "xhpl (odd) name", Executable: "xhpl", ServiceName: "xhpl",
			SlurmJobID: "1392969", SlurmStepID: "0",
			Placement: Placement{Rank: number(9), LocalRank: number(1), WorldSize: number(16)},
		}},
		{"slurm-v2-pmix", Facts{
			PID: 700, StartTicks: 4000, StartTime: boot.Add(40 * time.Second),
			Name: "slurm_script", Executable: "bash", ServiceName: "bash",
			SlurmJobID: "1392969", SlurmStepID: "batch",
		}},
		{"slurm-v1-openmpi", Facts{
			PID: 888, StartTicks: 6000, StartTime: boot.Add(60 * time.Second),
			Name: "osu_bw", Executable: "osu_bw", ServiceName: "osu_bw",
			SlurmJobID: "42", SlurmStepID: "batch",
			Placement: Placement{Rank: number(1), LocalRank: number(0), WorldSize: number(2)},
		}},
		{"podman-v2", Facts{
			PID: 99, StartTicks: 7000, StartTime: boot.Add(70 * time.Second),
			Name: "ib_write_bw", Executable: "ib_write_bw", ServiceName: "perf test", ServiceNamespace: "lab",
			ContainerID: strings.Repeat("ab", 32),
		}},
		{"podman-v2", Facts{
			PID: 98, StartTicks: 6900, StartTime: boot.Add(69 * time.Second),
			Name: "conmon", Executable: "conmon", ServiceName: "conmon",
		}},
	} {
		t.Run(fmt.Sprintf("%s/%d", test.tree, test.want.PID), func(t *testing.T) {
			got, err := NewReader(filepath.Join("testdata", test.tree)).Facts(test.want.PID)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			assertNoSecret(t, got, err)
		})
	}
}

// assertNoSecret looks for the planted value in all that leaves the package.
func assertNoSecret(t *testing.T, facts Facts, err error) {
	t.Helper()
	text, jsonErr := json.Marshal(facts)
	require.NoError(t, jsonErr)
	shown := fmt.Sprintf("%s %#v %v", text, facts, err)
	require.NotContains(t, shown, secret)
	require.NotContains(t, shown, strings.ToUpper(secret))
}

// TestFactsOfLiveProcess reads a process of the real /proc.
func TestFactsOfLiveProcess(t *testing.T) {
	child := start(t, "sleep", "600")
	facts, err := NewReader("").Facts(child)
	require.NoError(t, err)

	assert.Equal(t, child, facts.PID)
	assert.Equal(t, "sleep", facts.Name)
	program, err := exec.LookPath("sleep")
	require.NoError(t, err)
	program, err = filepath.EvalSymlinks(program)
	require.NoError(t, err)
	assert.Equal(t, filepath.Base(program), facts.Executable)
	assert.Equal(t, "live", facts.ServiceName)
	assert.Equal(t, Placement{Rank: number(3), LocalRank: number(1), WorldSize: number(8)}, facts.Placement)
	assert.Equal(t, "77", facts.SlurmJobID)
	assert.WithinDuration(t, time.Now(), facts.StartTime, 10*time.Second)
	assertNoSecret(t, facts, nil)

	name, err := NewReader("").ThreadName(child, child)
	require.NoError(t, err)
	assert.Equal(t, "sleep", name)
	_, err = NewReader("").ThreadName(child, os.Getpid())
	require.ErrorIs(t, err, ErrGone, "a thread of another process")
}

// start runs a program with a launcher's environment and waits until the exec
// is done.
func start(t *testing.T, program string, arguments ...string) int {
	t.Helper()
	command := exec.Command(program, arguments...)
	command.Env = []string{
		"PATH=/usr/bin:/bin", "TOKEN=" + secret, secret + "=1", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8",
		"OTEL_SERVICE_NAME=live", "OTEL_RESOURCE_ATTRIBUTES=token=" + secret, "SLURM_JOB_ID=77", "RANK_TOKEN=" + secret,
	}
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command.Process.Pid
}

func TestThreadNameOfRecordedProcess(t *testing.T) {
	reader := NewReader("testdata/torchrun-kubernetes")
	name, err := reader.ThreadName(4242, 4390)
	require.NoError(t, err)
	assert.Equal(t, "NCCL Progress 0", name)
	_, err = reader.ThreadName(4242, 1)
	require.ErrorIs(t, err, ErrGone)
}

func TestProcessThatIsGone(t *testing.T) {
	_, err := NewReader("testdata/torchrun-kubernetes").Facts(5)
	require.ErrorIs(t, err, ErrGone)
	assert.ErrorContains(t, err, "process 5")
	for _, pid := range []int{0, -1} {
		_, err = NewReader("").Facts(pid)
		require.Error(t, err)
		assert.NotErrorIs(t, err, ErrGone)
	}
}

// TestExitingProcess reads a real zombie: its environment is empty by then.
func TestExitingProcess(t *testing.T) {
	command := exec.Command("true")
	require.NoError(t, command.Start())
	defer command.Wait()
	var facts Facts
	require.Eventually(t, func() bool {
		var err error
		facts, err = NewReader("").Facts(command.Process.Pid)
		return errors.Is(err, ErrIncomplete) && strings.Contains(err.Error(), "exiting")
	}, 10*time.Second, 5*time.Millisecond)
	assert.Equal(t, command.Process.Pid, facts.PID)
	assert.NotEmpty(t, facts.Name)
}

// TestKernelThread reads one whose facts are few but complete.
func TestKernelThread(t *testing.T) {
	const kthreadd = 2
	comm, err := os.ReadFile("/proc/2/comm")
	if err != nil || string(comm) != "kthreadd\n" {
		t.Skip("process 2 is not kthreadd: the tests run in a PID namespace of their own")
	}
	facts, err := NewReader("").Facts(kthreadd)
	if errors.Is(err, fs.ErrPermission) || err != nil && strings.Contains(err.Error(), "CAP_SYS_PTRACE") {
		t.Skip("the tests run without CAP_SYS_PTRACE: " + err.Error())
	}
	require.NoError(t, err)
	assert.Equal(t, "kthreadd", facts.ServiceName)
}

// meddling runs a function when a file is opened, as if the process had acted
// at that moment.
type meddling struct {
	files
	on  string
	act func() error
}

func (m meddling) open(name string) (io.ReadCloser, error) {
	if name == m.on {
		if err := m.act(); err != nil {
			return nil, err
		}
	}
	return m.files.open(name)
}

// newTree writes a proc root with one process and returns the directories.
func newTree(t *testing.T, pid int, content map[string]string) (root, dir string) {
	t.Helper()
	root = t.TempDir()
	dir = filepath.Join(root, strconv.Itoa(pid))
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "stat"), []byte("btime 1767225600\n"), 0o644))
	for name, text := range content {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return root, dir
}

// statLine is a stat with start time and address of the environment.
func statLine(startTicks, envStart int) string {
	fields := make([]string, 52-2)
	for i := range fields {
		fields[i] = "0"
	}
	fields[fieldState] = "S"
	fields[fieldStartTime] = strconv.Itoa(startTicks)
	fields[fieldEnvStart] = strconv.Itoa(envStart)
	return "7 (name) " + strings.Join(fields, " ") + "\n"
}

func readMeddled(t *testing.T, root string, act func() error) (Facts, error) {
	t.Helper()
	dir, err := openProcess(root, 7)
	require.NoError(t, err)
	defer dir.Close()
	return NewReader(root).stable(7, meddling{files: dir, on: "environ", act: act})
}

func TestPIDReusedMeanwhile(t *testing.T) {
	root, dir := newTree(t, 7, map[string]string{"stat": statLine(100, 1), "environ": "RANK=1\x00WORLD_SIZE=2\x00"})
	facts, err := readMeddled(t, root, func() error {
		return os.WriteFile(filepath.Join(dir, "stat"), []byte(statLine(200, 1)), 0o644)
	})
	require.ErrorIs(t, err, ErrGone)
	assert.Empty(t, facts)
}

func TestExecMeanwhile(t *testing.T) {
	content := map[string]string{"stat": statLine(100, 1), "environ": "OTEL_SERVICE_NAME=before\x00"}
	root, dir := newTree(t, 7, content)
	execs := 0
	execute := func() error {
		execs++
		return errors.Join(
			os.WriteFile(filepath.Join(dir, "stat"), []byte(statLine(100, 1+execs)), 0o644),
			os.WriteFile(filepath.Join(dir, "environ"), []byte("OTEL_SERVICE_NAME=after"+strconv.Itoa(execs)+"\x00"), 0o644),
		)
	}
	once := func() error {
		if execs > 0 {
			return nil
		}
		return execute()
	}
	facts, err := readMeddled(t, root, once)
	require.NoError(t, err)
	assert.Equal(t, "after1", facts.ServiceName)

	facts, err = readMeddled(t, root, execute)
	require.ErrorIs(t, err, errExec)
	assert.Empty(t, facts)
}

// Without CAP_SYS_PTRACE the address of the environment reads as 0.
func TestExecOfAnotherProgramMeanwhile(t *testing.T) {
	root, dir := newTree(t, 7, map[string]string{"stat": statLine(100, 0), "environ": ""})
	program := filepath.Join(dir, "exe")
	require.NoError(t, os.Symlink("/bin/before", program))
	facts, err := readMeddled(t, root, func() error {
		return errors.Join(os.Remove(program), os.Symlink("/bin/after", program))
	})
	require.NoError(t, err)
	assert.Equal(t, "after", facts.Executable)
}

func TestIncompleteFacts(t *testing.T) {
	root, _ := newTree(t, 7, map[string]string{"stat": statLine(100, 1), "cgroup": "0::/slurm/job_5/step_1\n"})
	facts, err := readMeddled(t, root, func() error { return fs.ErrPermission })
	require.ErrorIs(t, err, ErrIncomplete)
	assert.ErrorContains(t, err, "environment")
	assert.ErrorContains(t, err, "CAP_SYS_PTRACE")
	assert.Equal(t, "name", facts.ServiceName)
	assert.Equal(t, "5", facts.SlurmJobID)
}

func TestHostileFiles(t *testing.T) {
	huge := strings.Repeat("A", 2*environLimit)
	for name, content := range map[string]map[string]string{
		"stat":    {"stat": huge, "environ": ""},
		"environ": {"stat": statLine(1, 1), "environ": "OTEL_SERVICE_NAME=" + huge + secret},
		"cgroup":  {"stat": statLine(1, 1), "environ": "", "cgroup": "0::/" + huge + "/" + strings.Repeat("a", 64) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root, _ := newTree(t, 7, content)
			facts, err := NewReader(root).Facts(7)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 1000)
			assert.Empty(t, facts.ContainerID)
			assert.LessOrEqual(t, len(facts.ServiceName), textLimit)
			assertNoSecret(t, facts, err)
		})
	}
}

func TestNoTimeOfBoot(t *testing.T) {
	root, _ := newTree(t, 7, map[string]string{"stat": statLine(1, 1)})
	require.NoError(t, os.Remove(filepath.Join(root, "stat")))
	_, err := NewReader(root).Facts(7)
	require.ErrorContains(t, err, "time of boot")
}

// The environment hangs, as it does while a process keeps its memory locked.
func TestExecutableDoesNotWait(t *testing.T) {
	root, dir := newTree(t, 7, map[string]string{"comm": "main thread\n"})
	for _, name := range []string{"environ", "stat"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	reader := NewReader(root)
	name, err := reader.Executable(7)
	require.NoError(t, err)
	assert.Equal(t, "main thread", name, "there is no program")

	require.NoError(t, os.Symlink("/opt/bin/python3 (deleted)", filepath.Join(dir, "exe")))
	name, err = reader.Executable(7)
	require.NoError(t, err)
	assert.Equal(t, "python3", name)

	_, err = reader.Executable(8)
	require.ErrorIs(t, err, ErrGone)
}
