package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever closes a terminal ends what runs on it, also where no signal tells it: under
// nohup, or in a session that is not that of the terminal.
func TestTopEndsWithItsTerminal(t *testing.T) {
	for name, attributes := range map[string]*syscall.SysProcAttr{
		"ignores SIGHUP":  {Setsid: true, Setctty: true},
		"another session": {Setsid: true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, "top", "--socket", collector(t, nodeView()))
			// A signal that is ignored stays so in who is executed.
			cmd.Args = []string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path, "top", cmd.Args[2], cmd.Args[3]}
			shell, err := exec.LookPath("sh")
			require.NoError(t, err)
			cmd.Path = shell
			terminal, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 120}, attributes)
			require.NoError(t, err)
			until(t, terminal, "0x18f2 ")
			require.NoError(t, terminal.Close())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				_ = cmd.Process.Kill()
				<-ended
				assert.Fail(t, "it runs on without its terminal")
			}
		})
	}
}

// Who has the other end of a terminal chooses its size, and not how much memory that takes.
func TestTopOnATerminalThatIsHuge(t *testing.T) {
	cmd := command(t, "top", "--socket", collector(t, nodeView()))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 65535, Cols: 65535})
	require.NoError(t, err)
	until(t, terminal, "use --once")
	_ = cmd.Wait()
	_ = terminal.Close()
	assert.Equal(t, exitUsage, cmd.ProcessState.ExitCode())

	cmd = command(t, "top", "--socket", collector(t, nodeView()))
	terminal, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	require.NoError(t, err)
	defer func() { _ = terminal.Close() }()
	until(t, terminal, "0x18f2 ")
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 400, Cols: 2600}))
	_, err = terminal.WriteString("h")
	require.NoError(t, err)
	until(t, terminal, "turn the order round")
	_, err = terminal.WriteString("xq")
	require.NoError(t, err)
	until(t, terminal, "\x1b[?1049l")
	assert.NoError(t, cmd.Wait())
}

// A terminal that cannot move its cursor gets no escape sequence.
func TestTopOnATerminalThatIsDumb(t *testing.T) {
	for _, kind := range []string{"TERM=dumb", "TERM=", "NOTERM=1"} {
		cmd := command(t, "top", "--socket", collector(t, nodeView()))
		cmd.Env = append(withoutTerm(), asCommand+"=1", kind)
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
		require.NoError(t, err)
		shown := until(t, terminal, "use --once")
		_ = cmd.Wait()
		_ = terminal.Close()
		assert.Equal(t, exitUsage, cmd.ProcessState.ExitCode(), kind)
		assert.NotContains(t, shown, "\x1b", kind)
	}
}

func withoutTerm() (kept []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TERM=") {
			kept = append(kept, variable)
		}
	}
	return kept
}
