package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

const (
	// mostColumns and mostLines are more than any screen has. A cell takes some 220 bytes,
	// and whoever has the other end of a terminal chooses how many it has.
	mostColumns, mostLines = 1000, 500
	// hangUpEvery is how often it is looked whether the terminal is gone.
	hangUpEvery = time.Second
)

// CheckTerminal says why a table cannot be shown live on this terminal. The size that it
// has at the start is not for a program to bound.
func CheckTerminal(in, out *os.File, kind string) error {
	if !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()) {
		return errors.New("standard input or output is no terminal: use --once")
	}
	if kind == "" || kind == "dumb" {
		return fmt.Errorf("the terminal cannot show a table live, TERM is %q: set TERM to what it is, such as xterm, or use --once", kind)
	}
	width, height, err := term.GetSize(out.Fd())
	if err != nil {
		return fmt.Errorf("ask the terminal for its size: %w: use --once", err)
	}
	if width > mostColumns || height > mostLines {
		return fmt.Errorf("the terminal has %d columns and %d lines, more than %d and %d: make it smaller (stty cols 120 rows 40), or use --once",
			width, height, mostColumns, mostLines)
	}
	return nil
}

// bounded keeps a window from growing over the bounds.
func bounded(_ tea.Model, message tea.Msg) tea.Msg {
	if size, ok := message.(tea.WindowSizeMsg); ok {
		return tea.WindowSizeMsg{Width: min(size.Width, mostColumns), Height: min(size.Height, mostLines)}
	}
	return message
}

// untilGone ends with the context, or calls end when one of the terminals is gone. The
// signal of that, SIGHUP, does not reach a program under nohup, or one of another session,
// and to who reads it is the end of a file, which is none of a program.
func untilGone(ctx context.Context, end func(), terminals ...*os.File) {
	for ctx.Err() == nil {
		if isGone(terminals) {
			end()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(hangUpEvery):
		}
	}
}

func isGone(terminals []*os.File) bool {
	polled := make([]unix.PollFd, 0, len(terminals))
	for _, terminal := range terminals {
		polled = append(polled, unix.PollFd{Fd: int32(terminal.Fd())}) // It hangs up without being asked for.
	}
	if _, err := unix.Poll(polled, 0); err != nil {
		return false // A signal: the next look tells.
	}
	for i := range polled {
		if polled[i].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
			return true
		}
	}
	return false
}
