package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// holding has all capabilities but some.
func holding(but ...string) map[string]bool {
	held := map[string]bool{}
	for _, c := range tracer.Capabilities() {
		held[c.Name] = true
	}
	for _, name := range but {
		held[name] = false
	}
	return held
}

// byName are the levels of findings about capabilities, without those that are OK.
func byName(f capabilityFacts) map[string]Level {
	bad := map[string]Level{}
	for i, finding := range judgeCapabilities(f) {
		if finding.Level != OK && i < len(tracer.Capabilities()) {
			bad[tracer.Capabilities()[i].Name] = finding.Level
		}
	}
	return bad
}

func TestCapabilitiesOfCollector(t *testing.T) {
	low, high := 2, 3
	for name, test := range map[string]struct {
		facts capabilityFacts
		want  map[string]Level
	}{
		"all":       {capabilityFacts{held: holding(), release: "6.1.0", paranoid: &high}, map[string]Level{}},
		"service":   {capabilityFacts{held: holding("CAP_SYS_ADMIN"), release: "6.12.0", paranoid: &low}, map[string]Level{"CAP_SYS_ADMIN": Note}},
		"on Debian": {capabilityFacts{held: holding("CAP_SYS_ADMIN"), release: "6.12.0", paranoid: &high}, map[string]Level{"CAP_SYS_ADMIN": Warning}},
		"on 6.1":    {capabilityFacts{held: holding("CAP_SYS_ADMIN"), release: "6.1.0", paranoid: &low}, map[string]Level{"CAP_SYS_ADMIN": Problem}},
		"admin has others": {
			capabilityFacts{held: holding("CAP_BPF", "CAP_PERFMON", "CAP_CHECKPOINT_RESTORE"), release: "6.12.0"}, map[string]Level{},
		},
		"none": {capabilityFacts{held: map[string]bool{}, release: "6.12.0", paranoid: &low}, map[string]Level{
			"CAP_BPF": Problem, "CAP_PERFMON": Problem, "CAP_SYS_PTRACE": Warning, "CAP_DAC_READ_SEARCH": Warning, "CAP_CHECKPOINT_RESTORE": Note, "CAP_SYS_ADMIN": Note,
		}},
	} {
		test.facts.collector = 42
		assert.Equal(t, test.want, byName(test.facts), name)
	}
}

// What a person may says nothing of the service.
func TestCapabilitiesOfThisProcess(t *testing.T) {
	findings := judgeCapabilities(capabilityFacts{held: map[string]bool{}, release: "6.12.0"})
	assert.Equal(t, Unknown, worst(findings))
	assert.Len(t, findings, 1+len(tracer.Capabilities()))
	assert.Contains(t, findings[0].Do, "Run this as root")
	assert.Equal(t, "this process has no CAP_BPF: it is for loading programs and maps", findings[1].What)
}

// One finding says what is missing and what it would buy, also to root.
func TestSightOfThisProcess(t *testing.T) {
	const own, root, most = "CapEff:\t0000000000000000\n", "Uid:\t0\t0\t0\t0\n", "CapEff:\t000001ffffffffff\n"
	running := shows{view: radar.View{Tracing: radar.Tracing{Phase: radar.Running}}, pid: 42}
	for name, test := range map[string]struct {
		status    string
		collector Collector
		// says are parts of the findings of CAP_SYS_PTRACE, do is of the one that says what to do.
		says, do string
	}{
		"nobody":                     {"Uid:\t65534\t65534\t65534\t65534\n" + own, noCollector{}, "this process has no CAP_SYS_PTRACE", "Run this as root, or beside"},
		"root without":               {root + "CapEff:\t000001fffff7ffff\n", noCollector{}, "this process has no CAP_SYS_PTRACE", "Root lacks a capability here"},
		"nobody beside a collector":  {own, running, "other than the collector, has no CAP_SYS_PTRACE and no CAP_DAC_READ_SEARCH", "Run this as root."},
		"root with all":              {root + most, noCollector{}, "", ""},
		"root beside a collector":    {root + most, running, "", ""},
		"without, beside the former": {root + "CapEff:\t000001fffff7ffff\n", running, "other than the collector, has no CAP_SYS_PTRACE", "Root lacks a capability here"},
	} {
		s := machine(t, fabrictest.NoRDMA, test.collector)
		s.write(t, "proc/self/status", test.status)
		s.write(t, "proc/42/status", "CapEff:\t000001ffffffffff\n")
		var missing, remedies []string
		for _, f := range s.checkCapabilities(t.Context()) {
			if f.Level == OK {
				continue
			}
			remedies = append(remedies, f.Do)
			if strings.Contains(f.What, "CAP_SYS_PTRACE") {
				missing = append(missing, f.What)
				assert.Equal(t, moreToTell, f.Means, name)
			}
		}
		if test.says == "" {
			assert.Empty(t, remedies, name)
			continue
		}
		require.Len(t, missing, 1, name)
		assert.Contains(t, missing[0], test.says, name)
		assert.Contains(t, strings.Join(remedies, " "), test.do, name)
	}
}

// Of a process of which nothing could be read nothing is said to be missing.
func TestUnknownSightIsNotMissing(t *testing.T) {
	s := machine(t, fabrictest.NoRDMA, shows{view: radar.View{Tracing: radar.Tracing{Phase: radar.Running}}, pid: 42})
	s.write(t, "proc/42/status", "CapEff:\t000001ffffffffff\n")
	for _, f := range s.checkCapabilities(t.Context()) {
		assert.NotContains(t, f.What, "other than the collector")
	}
}

// Where a collector runs, its capabilities count, and not one's own.
func TestCapabilitiesAreThoseOfTheCollector(t *testing.T) {
	s := machine(t, fabrictest.NoRDMA, shows{view: radar.View{Tracing: radar.Tracing{Phase: radar.Running}}, pid: 42})
	s.write(t, "proc/42/status", "CapEff:\t000001c000080004\n")
	s.write(t, "proc/self/status", "CapEff:\t0000000000000000\n")
	s.write(t, "proc/sys/kernel/perf_event_paranoid", "3\n")
	findings := s.checkCapabilities(t.Context())
	assert.Equal(t, Warning, worst(findings))
	last := findings[len(findings)-2]
	assert.Contains(t, last.What, "the collector (pid 42) has no CAP_SYS_ADMIN")
	assert.Contains(t, last.Do, "kernel.perf_event_paranoid=2, which is 3")

	s = machine(t, fabrictest.NoRDMA, noCollector{})
	assert.Equal(t, Unknown, worst(s.checkCapabilities(t.Context())), "no status file")
}
