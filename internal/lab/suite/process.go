package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

// process is a program of the guest, its output in a file.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	// status and ended are set when done is closed.
	status error
	ended  time.Time
}

func startProcess(log string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(args, " "), err)
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.status = cmd.Wait()
		p.ended = time.Now()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) exited() (bool, error) {
	select {
	case <-p.done:
		return true, p.status
	default:
		return false, nil
	}
}

// wait waits for the end and reports a status other than 0.
func (p *process) wait(ctx context.Context, limit time.Duration) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", p.name(), ctx.Err())
	case <-time.After(limit):
		return fmt.Errorf("%s did not end within %s; the end of its output: %s", p.name(), limit, p.outputTail())
	}
	if p.status != nil {
		return fmt.Errorf("%s: %w; the end of its output: %s", p.name(), p.status, p.outputTail())
	}
	return nil
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process and waits for it.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
	}
}

func (p *process) name() string { return strings.Join(p.cmd.Args, " ") }

func (p *process) output() (string, error) {
	data, err := os.ReadFile(p.log)
	return string(data), err
}

func (p *process) outputTail() string {
	text, err := p.output()
	if err != nil {
		return err.Error()
	}
	const limit = 1200
	if len(text) > limit {
		text = "…" + text[len(text)-limit:]
	}
	return strings.TrimSpace(text)
}

// run runs a program to its end and returns what it printed.
func run(ctx context.Context, args ...string) (string, error) { return wire.Run(ctx, args...) }

// runLines runs one command line after the other; words are separated by
// spaces.
func runLines(ctx context.Context, lines string) error { return wire.RunLines(ctx, lines) }
