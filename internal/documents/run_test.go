//go:build backends

package documents

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// patience bounds what takes seconds on an idle machine.
	patience = time.Minute
	look     = 50 * time.Millisecond
)

// standIns take the place of what a document leaves to its reader, and of a file that is not
// on the machine of the tests.
var standIns = strings.NewReplacer("…", "token", "FILE", "config/debug.yaml", "/etc/otelcol-rdma/environment", "environment")

// Those that are run are run as they stand, with what was built in the path.
func TestCommandsOfTheDocuments(t *testing.T) {
	require.Zero(t, os.Geteuid(), "needs root: a collector that traces nothing is not what the documents have")
	r := newReader(t)
	for _, tried := range trials {
		t.Run(tried.command, func(t *testing.T) { r.try(t, &tried) })
	}
}

// reader does what the documents say.
type reader struct {
	directory, path string
}

// newReader has a directory that is like the root of the repository, and may be written to.
func newReader(t *testing.T) reader {
	t.Helper()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	r := reader{directory: t.TempDir()}
	for _, name := range []string{"bin", "config"} {
		require.NoError(t, os.Symlink(filepath.Join(top, name), filepath.Join(r.directory, name)))
	}
	environment, err := os.ReadFile(filepath.Join(top, "config/packages/environment"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.directory, "environment"), environment, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(r.directory, "status.yaml"), statusOverlay(t), 0o600))
	// Root needs no sudo, and machines of tests do not have it.
	sudo := t.TempDir()
	require.NoError(t, os.Symlink("/usr/bin/env", filepath.Join(sudo, "sudo")))
	r.path = strings.Join([]string{sudo, filepath.Join(top, "bin"), filepath.Join(top, "bin/tools"), os.Getenv("PATH")}, ":")
	return r
}

// overlay is the block of configuration.md that is put into status.yaml.
var overlay = regexp.MustCompile("(?s)where status.yaml is:\n\n```yaml\n(.*?)```")

func statusOverlay(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/configuration.md"))
	require.NoError(t, err)
	found := overlay.FindSubmatch(text)
	require.NotNil(t, found, "docs/configuration.md has no status.yaml")
	return found[1]
}

func (r *reader) try(t *testing.T, tried *trial) {
	t.Helper()
	if tried.serves {
		r.serve(t, tried)
		return
	}
	r.run(t, t.Context(), tried)
}

// run runs a command to its end, which has to be a good one.
func (r *reader) run(t require.TestingT, ctx context.Context, tried *trial) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	printed, err := r.command(ctx, tried.command).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
		require.True(t, exit.Exited() && exit.ExitCode() <= tried.status, "%v: %s", err, printed)
	}
	require.Regexp(t, tried.says, string(printed))
	if tried.leaves == "" {
		return
	}
	left, err := os.ReadFile(filepath.Join(r.directory, tried.leaves))
	require.NoError(t, err)
	require.Regexp(t, tried.holding, string(left))
}

// served is the file in which is what the last one printed that served.
const served = "served"

// serve has a command go on until it is ready and those that ask it have ended.
func (r *reader) serve(t *testing.T, tried *trial) {
	t.Helper()
	path := filepath.Join(r.directory, served)
	log, err := os.Create(path)
	require.NoError(t, err)
	command := r.command(t.Context(), tried.command)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	require.NoError(t, log.Close())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	defer func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM)
		<-ended
	}()

	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		printed, err := os.ReadFile(path)
		require.NoError(t, err)
		if regexp.MustCompile(tried.says).Match(printed) {
			break
		}
		select {
		case err := <-ended:
			ended <- err
			require.Fail(t, "it ended", "%v: %s", err, printed)
		default:
		}
		require.True(t, time.Now().Before(deadline), "it was not ready after %v: %s", patience, printed)
	}
	for _, meanwhile := range tried.meanwhile {
		t.Run(meanwhile.command, func(t *testing.T) {
			// A collector traces some seconds after it is ready.
			require.EventuallyWithT(t, func(c *assert.CollectT) { r.run(c, t.Context(), &meanwhile) }, patience, look)
		})
	}
}

// command is one as people type it into a shell.
func (r *reader) command(ctx context.Context, words string) *exec.Cmd {
	if strings.HasPrefix(words, "2>&1") {
		// It is put behind what serves.
		words = "cat " + served + " " + words
	}
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", standIns.Replace(words))
	command.Dir = r.directory
	command.Env = append(os.Environ(), "PATH="+r.path)
	// A shell has children, which are to end with it, and it with the test.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = patience
	return command
}
