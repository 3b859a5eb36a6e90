package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// output runs a host program and returns what it printed. The error carries
// the command line and the end of its standard error.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, tail(stderr.Bytes(), 2000))
	}
	return stdout.Bytes(), nil
}

func tail(b []byte, limit int) string {
	if len(b) > limit {
		b = b[len(b)-limit:]
	}
	return strings.TrimSpace(string(b))
}
