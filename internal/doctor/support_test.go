package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// expected is what a judgement has to say: the level, and a part of the text.
type expected struct {
	level Level
	says  string
}

// expect holds findings against what is expected, in order and all of them.
func expect(t *testing.T, name string, findings []Finding, want ...expected) {
	t.Helper()
	var got []string
	for _, f := range findings {
		got = append(got, f.Level.String()+": "+f.What+" | "+f.Means+" | "+f.Do)
	}
	if !assert.Len(t, findings, len(want), "%s: %s", name, strings.Join(got, "\n")) {
		return
	}
	for i, w := range want {
		assert.Equal(t, w.level, findings[i].Level, "%s: %s", name, got[i])
		assert.Contains(t, got[i], w.says, name)
		if w.level >= Warning {
			assert.NotEmpty(t, findings[i].What+findings[i].Do, name)
		}
	}
}

// noCollector is a machine without one.
type noCollector struct{}

func (noCollector) View(context.Context) (radar.View, error) {
	return radar.View{}, radarclient.ErrNotRunning
}

func (noCollector) Tracing(context.Context) (radar.Tracing, error) {
	return radar.Tracing{}, radarclient.ErrNotRunning
}
func (noCollector) PID() int { return 0 }

// shows is a collector.
type shows struct {
	view radar.View
	pid  int
}

func (s shows) View(context.Context) (radar.View, error) { return s.view, nil }
func (s shows) Tracing(context.Context) (radar.Tracing, error) {
	return s.view.Tracing, nil
}
func (s shows) PID() int { return s.pid }

// machine is a recorded one: the sysfs of a tree of fabrictest, and what is added.
func machine(t *testing.T, tree string, collector Collector) *System {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Rename(fabrictest.Tree(t, tree), filepath.Join(root, "sys")))
	s := &System{
		root: root, collector: collector,
		tries:  func(context.Context) (tracer.Trial, error) { return tracer.Trial{}, errors.New("not tried") },
		clock:  func() (clockFacts, error) { return clockFacts{synchronised: true}, nil },
		held:   func() bool { return false },
		fabric: fabric.NewReader(filepath.Join(root, "sys")), finder: provider.NewFinder(filepath.Join(root, "proc")),
	}
	s.share(t.Context())
	s.write(t, "proc/sys/kernel/osrelease", "6.12.95-amd64\n")
	return s
}

func (s *System) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func (s *System) link(t *testing.T, name, target string) {
	t.Helper()
	path := filepath.Join(s.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.Symlink(target, path))
}

// levels are those of findings.
func levels(findings []Finding) (all []Level) {
	for _, f := range findings {
		all = append(all, f.Level)
	}
	slices.Sort(all)
	return all
}
