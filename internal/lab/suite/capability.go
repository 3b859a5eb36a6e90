package suite

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// missingCapability runs the collector without a capability it needs: with
// error_mode propagate it ends with an error that names it.
func missingCapability(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	var named []string
	for _, name := range []string{"bpf", "perfmon"} {
		line, err := g.refusal(ctx, name)
		if err != nil {
			return "", err
		}
		named = append(named, line)
	}
	return strings.Join(named, "; "), nil
}

// refusal runs the collector without one capability and without CAP_SYS_ADMIN,
// which the kernel takes in place of it, and reads its output.
func (g *Guest) refusal(ctx context.Context, capability string) (string, error) {
	c, err := g.launchCollector(atSites(), "setpriv", "--bounding-set=-sys_admin,-"+capability)
	if err != nil {
		return "", err
	}
	defer func() {
		c.kill()
		_ = g.keepLogs(c.dir)
	}()
	select {
	case <-c.done:
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(2 * patience):
		return "", fmt.Errorf("without CAP_%s the collector runs on, with error_mode propagate: %s", strings.ToUpper(capability), c.outputTail())
	}
	if c.status == nil {
		return "", fmt.Errorf("without CAP_%s the collector ended with success", strings.ToUpper(capability))
	}
	output, err := c.output()
	if err != nil {
		return "", err
	}
	want := "CAP_" + strings.ToUpper(capability)
	for line := range strings.Lines(output) {
		if strings.Contains(line, want) && strings.Contains(line, "error") {
			return "named " + want, nil
		}
	}
	return "", fmt.Errorf("without %s the collector does not name it: %s", want, c.outputTail())
}
