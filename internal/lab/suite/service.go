package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// Package is the file name of the agent's Debian package in the share.
const Package = "agent.deb"

const (
	unit        = "otelcol-rdma"
	environment = "/etc/otelcol-rdma/environment"
)

// Service returns the tests of the package in the order of running, for a guest that
// runs systemd. The later ones need the first.
func Service() []Test {
	return []Test{
		{"package is installed", packageIsInstalled},
		{"service traces and starts again", serviceTraces},
		{"package is purged", packageIsPurged},
	}
}

// packageIsInstalled installs the package as a person does, and checks that the service
// has CAP_SYS_ADMIN where the kernel asks for it, and not elsewhere.
func packageIsInstalled(ctx context.Context, g *Guest) (string, error) {
	said, err := dpkg(ctx, "--install", filepath.Join(g.share, Package))
	if err != nil {
		return "", err
	}
	if !strings.Contains(said, "set GATEWAY in "+environment) {
		return "", fmt.Errorf("the package does not say what to do next: %s", said)
	}
	capabilities, err := unitCapabilities(ctx)
	if err != nil {
		return "", err
	}
	manyAtOnce, err := kernelSince(6, 6)
	if err != nil {
		return "", err
	}
	if slices.Contains(capabilities, "sys_admin") == manyAtOnce {
		return "", fmt.Errorf("the service has %v", capabilities)
	}
	return "with " + strings.Join(capabilities, ", "), nil
}

// dpkg runs it without the programs that it asks for and this guest does not have, as
// no package here has a library or a changed configuration.
func dpkg(ctx context.Context, words ...string) (string, error) {
	return run(ctx, append([]string{"dpkg", "--force-bad-path"}, words...)...)
}

// unitCapabilities are those of the service as systemd has read it, without CAP_.
func unitCapabilities(ctx context.Context) ([]string, error) {
	var sets []string
	for _, property := range []string{"CapabilityBoundingSet", "AmbientCapabilities"} {
		value, err := show(ctx, property)
		if err != nil {
			return nil, err
		}
		sets = append(sets, value)
	}
	if sets[0] != sets[1] {
		return nil, fmt.Errorf("the service is bounded by %q, and has %q", sets[0], sets[1])
	}
	return strings.Fields(strings.ReplaceAll(sets[0], "cap_", "")), nil
}

// show returns a property of the service.
func show(ctx context.Context, property string) (string, error) {
	value, err := run(ctx, "systemctl", "show", "--property="+property, "--value", unit)
	return strings.TrimSpace(value), err
}

// serviceTraces runs the service: the gateway gets a slow request, and there is nothing
// to warn of. It is killed and starts again, and leaves nothing when it is stopped. Where
// the kernel asks for no more than the capabilities of the unit, it has the same probes
// as root has with these and without a sandbox; a start takes long here, and once is
// enough.
func serviceTraces(ctx context.Context, g *Guest) (string, error) {
	// What Linux itself sets: Debian's 3 takes CAP_SYS_ADMIN for probes in the kernel.
	if err := os.WriteFile(paranoidFile, []byte(strconv.Itoa(plainParanoid)), 0o644); err != nil {
		return "", err
	}
	manyAtOnce, err := kernelSince(6, 6)
	if err != nil {
		return "", err
	}
	received, err := g.startGateway(ctx)
	if err != nil {
		return "", err
	}
	var unconfined observation
	if manyAtOnce {
		if unconfined, err = g.runAsRoot(ctx); err != nil {
			return "", fmt.Errorf("as root: %w", err)
		}
	}
	if _, err := run(ctx, "systemctl", "enable", "--now", unit); err != nil {
		return "", err
	}
	confined, err := g.observed(ctx, journal)
	if err != nil {
		return "", err
	}
	if len(confined.warnings) > 0 {
		return "", fmt.Errorf("the service warns of %q", sorted(confined.warnings))
	}
	if manyAtOnce && !maps.Equal(confined.probes, unconfined.probes) {
		return "", fmt.Errorf("the service has the probes %v, as root there are %v", sorted(confined.probes), sorted(unconfined.probes))
	}
	slow, err := g.gatewayGetsASlowRequest(ctx, received)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, with %d kinds of probes", slow, len(confined.probes)), g.serviceStartsAgain(ctx)
}

// gatewayGetsASlowRequest lets a client wait for a slow wire.
func (g *Guest) gatewayGetsASlowRequest(ctx context.Context, received *otlp.Tail) (string, error) {
	if err := impair(ctx, "delay "+injected.String()); err != nil {
		return "", err
	}
	client, server, err := g.startPingpong(ctx, endless)
	if err != nil {
		return "", err
	}
	defer client.kill()
	defer server.kill()
	var slow otlp.Span
	err = waitFor(ctx, patience, "a slow request of "+pingpong+" is at the gateway", func() (bool, error) {
		if exited, status := client.exited(); exited {
			return false, fmt.Errorf("the client ended: %w: %s", status, client.outputTail())
		}
		spans, err := received.Spans()
		for _, s := range spans {
			if s.Service == pingpong && s.Duration() >= injected {
				slow = s
				return true, err
			}
		}
		return false, err
	})
	return fmt.Sprintf("%s of %s at the gateway", slow.Name, slow.Duration().Round(time.Millisecond)), err
}

// serviceStartsAgain kills the service, waits until systemd has started it again, with
// what the killed one left behind, and stops it.
func (g *Guest) serviceStartsAgain(ctx context.Context) error {
	starts := func() (int, error) {
		log, err := journal(ctx)
		return strings.Count(log, "Everything is ready"), err
	}
	before, err := starts()
	if err != nil {
		return err
	}
	if _, err := run(ctx, "systemctl", "kill", "--signal=KILL", unit); err != nil {
		return err
	}
	err = waitFor(ctx, collectorStart, "systemd starts the service again", func() (bool, error) {
		now, err := starts()
		return now > before, err
	})
	if err != nil {
		return err
	}
	if _, err := run(ctx, "systemctl", "disable", "--now", unit); err != nil {
		return err
	}
	return g.nothingLeft(ctx)
}

// runAsRoot runs the agent as root with the capabilities of the unit, and returns what
// came of it. Nothing of the service's directories is used.
func (g *Guest) runAsRoot(ctx context.Context) (observation, error) {
	capabilities, err := unitCapabilities(ctx)
	if err != nil {
		return observation{}, err
	}
	p, err := g.start("as-root", "setpriv", "--inh-caps=-all", "--bounding-set=-all,+"+strings.Join(capabilities, ",+"),
		"env", gatewayVariable, "RDMA_TOKEN=token", "/usr/bin/otelcol-rdma", "--config=/etc/otelcol-rdma/agent.yaml",
		"--config=yaml:receivers::rdma::cache_directory: ''", "--config=yaml:extensions::file_storage::directory: "+g.dir)
	if err != nil {
		return observation{}, err
	}
	seen, err := g.observed(ctx, func(context.Context) (string, error) { return p.output() })
	if err != nil {
		return observation{}, fmt.Errorf("%w; the end of its output: %s", err, p.outputTail())
	}
	p.kill()
	return seen, g.nothingLeft(ctx)
}

// journal is what the service has logged.
func journal(ctx context.Context) (string, error) {
	return run(ctx, "journalctl", "--unit="+unit, "--output=cat", "--no-pager")
}

// packageIsPurged checks that nothing is left of the package but its user: the guest has
// no program that removes one.
func packageIsPurged(ctx context.Context, _ *Guest) (string, error) {
	if _, err := dpkg(ctx, "--purge", unit); err != nil {
		return "", err
	}
	for _, top := range []string{"/etc", "/usr/bin", "/usr/lib/systemd", "/usr/lib/sysusers.d", "/usr/share/doc", "/var", "/run", "/lib/systemd"} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && strings.Contains(entry.Name(), unit) {
				err = fmt.Errorf("%s is left of the package", path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	loaded, err := show(ctx, "LoadState")
	if err == nil && loaded != "not-found" {
		err = fmt.Errorf("systemd has the unit still: %s", loaded)
	}
	return "nothing is left", err
}

// observation is what an agent attached and complained of.
type observation struct {
	// probes are links by their kind and program, warnings the texts of log lines.
	probes, warnings map[string]bool
}

// observed waits until an agent probes the provider of the keeper and the driver in the
// kernel, and returns what it attached by then and what its log has.
func (g *Guest) observed(ctx context.Context, log func(context.Context) (string, error)) (observation, error) {
	err := waitFor(ctx, collectorStart, "the agent probes rxe", func() (bool, error) {
		telemetry, err := ownMetrics(ctx)
		if err != nil {
			return false, nil // not listening yet
		}
		_, kernel := probesKernelVerbs(telemetry)
		return kernel && pollMode(telemetry) != "", nil
	})
	text, errLog := log(ctx)
	if err := errors.Join(err, errLog); err != nil {
		return observation{}, fmt.Errorf("%w; its log: %s", err, text)
	}
	probes, err := g.ownLinks(ctx)
	return observation{probes: probes, warnings: warningsIn(text)}, err
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// warningsIn returns the texts of warnings and errors in a collector's log, without
// their fields. Those of gRPC are about the gateway.
func warningsIn(log string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(log) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) < 3 || fields[1] != "warn" && fields[1] != "error" || strings.HasPrefix(fields[2], "grpc@") {
			continue
		}
		text := fields[2]
		if strings.Contains(text, ".go:") && len(fields) > 3 {
			text = fields[3]
		}
		found[text] = true
	}
	return found
}
