package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func finds(name string, level Level) Check {
	return Check{name, func(context.Context) []Finding {
		return []Finding{{Level: level, What: name + " is " + level.String()}}
	}}
}

// hangs is a check that reads what never answers.
func hangs(t *testing.T, name string) Check {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return Check{name, func(context.Context) []Finding {
		<-end
		return nil
	}}
}

func TestRunLeavesBehindWhatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	report := Run(ctx, []Check{hangs(t, "nfs"), finds("kernel", OK), finds("clock", Note)})
	assert.Equal(t, []string{"nfs"}, report.NotReached)
	assert.Equal(t, Warning, report.Worst)
	require.Len(t, report.Findings, 2)
	assert.Equal(t, Finding{Check: "kernel", Level: OK, What: "kernel is ok"}, report.Findings[0])
}

// No escape sequence gets into a report, in whichever form it is written.
func TestTextsAreCleaned(t *testing.T) {
	report := Run(t.Context(), []Check{{"processes", func(context.Context) []Finding {
		return []Finding{{What: "evil\x1b[31m\u202e", Means: "\x9b5A", Do: "a\nb"}}
	}}})
	assert.Equal(t, []Finding{{Check: "processes", What: "evil\uFFFD[31m\uFFFD", Means: "\uFFFD5A", Do: "a\uFFFDb"}}, report.Findings)
}

// fixed is a report that does not depend on the machine of the test.
func fixed() Report {
	return Report{
		At: time.Date(2026, 11, 30, 3, 12, 44, 0, time.UTC), Host: "node-7", Kernel: "6.12.95 amd64", Worst: Problem,
		Findings: []Finding{
			{Check: "kernel", What: "Linux 6.12.95 is new enough"},
			{
				Check: "capabilities", Level: Problem, What: "no CAP_BPF: it is for loading programs and maps",
				Means: "Without it nothing is traced, and this is a sentence that is long enough to be broken at least once, whatever the width of a terminal is.",
				Do:    "Grant it: CAP_BPF in CapabilityBoundingSet= and AmbientCapabilities= of the service (systemctl edit otelcol-rdma), and start that again.",
			},
			{Check: "processes", Level: Note, What: "evil\x1b[31m\u202e (pid 7) is a 32-bit program"},
		},
		NotReached: []string{"libraries"},
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "UPDATE_GOLDEN=1 writes it")
	assert.Equal(t, string(want), got)
}

func TestWrite(t *testing.T) {
	report := fixed()
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, &report))
	golden(t, "report.txt", out.String())
	assert.NotContains(t, out.String(), "\x1b")
	out.Reset()
	require.NoError(t, WriteJSON(&out, &report))
	golden(t, "report.json", out.String())
	assert.True(t, json.Valid(out.Bytes()))
}

func TestSummary(t *testing.T) {
	for want, findings := range map[string][]Finding{
		"This node can be observed, and nothing about it is odd.": {{Level: Note}},
		"1 warning.": {{Level: Warning}},
		"2 warnings, 1 thing that could not be looked at.":    {{Level: Warning}, {Level: Warning}, {Level: Unknown}},
		"This node cannot be observed: 1 problem, 1 warning.": {{Level: Problem}, {Level: Warning}},
	} {
		report := Report{Findings: findings}
		assert.Equal(t, want, report.summary())
	}
}

// All checks of a recorded machine end, and each says something, or has nothing to say.
func TestDiagnose(t *testing.T) {
	for _, tree := range fabrictest.Names() {
		s := machine(t, tree, noCollector{})
		s.write(t, "proc/sys/kernel/hostname", "node-7\n")
		report := s.Diagnose(t.Context())
		assert.Equal(t, "node-7", report.Host)
		assert.Contains(t, report.Kernel, "6.12.95-amd64 ")
		assert.Empty(t, report.NotReached)
		checks := map[string]bool{}
		for _, f := range report.Findings {
			checks[f.Check] = true
			assert.NotEmpty(t, f.What)
		}
		for _, check := range s.Checks() {
			if check.Name != pcieName {
				assert.True(t, checks[check.Name], "%s: %s", tree, check.Name)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	for name, test := range map[string]struct {
		report  Report
		healthy bool
		says    string
	}{
		"well":        {Report{Findings: []Finding{{Check: "devices", What: "8 devices"}, {Check: "pcie", What: "fast"}, {Check: "collector", What: "traced"}}}, true, "healthy: 8 devices; traced\n"},
		"not watched": {Report{Findings: []Finding{{Check: "devices", What: "8 devices"}, {Check: "collector", Level: Note, What: "no collector answers"}}}, true, "healthy: 8 devices; no collector answers\n"},
		"spare port":  {Report{Findings: []Finding{{Check: "devices", What: "2 devices"}, {Check: "devices", Level: Note, What: "port 2 is DOWN"}}}, true, "healthy: 2 devices\n"},
		"no device":   {Report{Findings: []Finding{{Check: "devices", Level: Note, What: "no RDMA device"}}}, true, "healthy: no RDMA device\n"},
		"degraded":    {Report{Findings: []Finding{{Check: "devices", What: "8 devices"}, {Check: "pcie", Level: Warning, What: "mlx5_3: narrow"}}}, false, "not healthy: mlx5_3: narrow\n"},
		"degraded and starved": {
			Report{Findings: []Finding{{Check: "devices", Level: Warning, What: "mlx5_3: DOWN"}}, NotReached: []string{"pcie"}},
			false,
			"not healthy: mlx5_3: DOWN; not reached: pcie\n",
		},
		"collector hangs": {
			Report{Findings: []Finding{{Check: "devices", What: "8 devices"}}, NotReached: []string{"collector"}},
			true,
			"healthy: 8 devices; not reached: collector\n",
		},
		"hostile": {Report{Findings: []Finding{{Check: "devices", Level: Warning, What: "a\nb\x1b[31m"}}}, false, "not healthy: a\uFFFDb\uFFFD[31m\n"},
	} {
		h, err := judgeHealth(&test.report, func() bool { return false })
		require.NoError(t, err, name)
		assert.Equal(t, test.healthy, h.Healthy(), name)
		var out bytes.Buffer
		require.NoError(t, WriteHealth(&out, &h))
		assert.Equal(t, test.says, out.String(), name)
	}
}

// A look that does not end is a fault only where a driver holds it: a node that is busy
// must not be drained for that.
func TestHealthThatIsNotSeenInTime(t *testing.T) {
	for _, held := range []bool{true, false} {
		s := machine(t, fabrictest.SingleRoCE, noCollector{})
		s.held = func() bool { return held }
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		s.inventory = func() (inventory, error) {
			<-end
			return inventory{}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		h, err := s.CheckHealth(ctx, 0)
		if !held {
			require.EqualError(t, err, "reading the devices did not end in time, and no thread of it is held in state D: the node may be too busy, look at its load")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, []string{"reading the devices did not end in time: a driver or its firmware does not answer"}, h.Faults)
	}
}

func TestHealthOfRecordedMachines(t *testing.T) {
	for tree, healthy := range map[string]bool{
		fabrictest.TwoSockets: false, fabrictest.SingleRoCE: true, fabrictest.SoftRoCE: true, fabrictest.NoRDMA: true, fabrictest.Bond: true,
	} {
		h, err := machine(t, tree, noCollector{}).CheckHealth(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, healthy, h.Healthy(), "%s: %v", tree, h)
	}
}

// Who knows how many devices a node has is told when the driver of one did not load.
func TestHealthOfTooFewDevices(t *testing.T) {
	for _, test := range []struct {
		tree  string
		least int
		fault string
	}{
		{fabrictest.NoRDMA, 0, ""},
		{fabrictest.NoRDMA, 8, "the kernel lists 0 RDMA devices of 8"},
		{fabrictest.SingleRoCE, 1, ""},
		{fabrictest.SingleRoCE, 2, "the kernel lists 1 RDMA device of 2"},
	} {
		h, err := machine(t, test.tree, noCollector{}).CheckHealth(t.Context(), test.least)
		require.NoError(t, err)
		assert.Equal(t, test.fault, strings.Join(h.Faults, "; "), "%s, %d", test.tree, test.least)
	}
}

// ACS is how a fleet is set up: a prolog that asks must not drain all of it.
func TestHealthIsNotOfSettings(t *testing.T) {
	s := machine(t, fabrictest.SingleRoCE, noCollector{})
	d := device("mlx5_0", port("ACTIVE", "LinkUp", 400))
	d.PCI = &fabric.PCIDevice{
		PCIFunction: fabric.PCIFunction{Control: &fabric.PCIeControl{RelaxedOrdering: true}},
		Bridges:     []fabric.PCIFunction{{ACS: &fabric.ACS{Supported: true, RequestRedirect: true}}},
	}
	s.inventory = func() (inventory, error) {
		return inventory{devices: []fabric.DeviceDetail{d}, gpus: []fabric.PCIDevice{{}}}, nil
	}
	require.Equal(t, Warning, worst(s.checkPCIe(t.Context())))
	h, err := s.CheckHealth(t.Context(), 0)
	require.NoError(t, err)
	assert.Empty(t, h.Faults)
}

// A port for storage may be slower than the others, and a link on an idle machine may be
// saving power: a prolog that asks must not drain for that.
func TestHealthIsNotOfWhatMayBeMeant(t *testing.T) {
	fast, half := fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: 16}, fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: 8}
	saving := fabric.PCIeLink{GigatransfersPerSecond: 2.5, Lanes: 16}
	for name, test := range map[string]struct {
		link    fabric.PCIeLink
		healthy bool
	}{
		"saves power": {saving, true},
		"half width":  {half, false},
	} {
		s := machine(t, fabrictest.SingleRoCE, noCollector{})
		d, storage := device("mlx5_0", port("ACTIVE", "LinkUp", 400)), device("mlx5_1", port("ACTIVE", "LinkUp", 200))
		d.PCI = &fabric.PCIDevice{PCIFunction: fabric.PCIFunction{Address: "0000:18:00.0", Link: test.link, MaxLink: fast}}
		s.inventory = func() (inventory, error) { return inventory{devices: []fabric.DeviceDetail{d, storage}}, nil }
		assert.Equal(t, Warning, worst(s.checkDevices(t.Context())), name)
		assert.Equal(t, Warning, worst(s.checkPCIe(t.Context())), name)
		h, err := s.CheckHealth(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, test.healthy, h.Healthy(), "%s: %v", name, h)
	}
}

// A container without sysfs shows nothing of its node: that is not healthy, nor is it not.
func TestHealthOfWhatCannotBeSeen(t *testing.T) {
	s := machine(t, fabrictest.SingleRoCE, noCollector{})
	require.NoError(t, os.RemoveAll(filepath.Join(s.root, "sys")))
	_, err := s.CheckHealth(t.Context(), 0)
	assert.ErrorContains(t, err, "no sysfs is mounted at /sys")
}
