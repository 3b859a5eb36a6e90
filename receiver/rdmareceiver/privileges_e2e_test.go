//go:build e2e

package rdmareceiver_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// nobody is a user without any right, who has the given capabilities besides
// (include/uapi/linux/capability.h).
func nobody(capabilities ...uintptr) *syscall.SysProcAttr {
	const id = 65534
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}, AmbientCaps: capabilities}
}

const (
	capPerfmon = 38
	capBPF     = 39
)

// toDebug has all three signals, so that three components share what fails.
func toDebug(receiver string) string {
	return `receivers:
  rdma: ` + receiver + `
exporters:
  debug:
service:
  pipelines:
    traces: {receivers: [rdma], exporters: [debug]}
    metrics: {receivers: [rdma], exporters: [debug]}
    logs: {receivers: [rdma], exporters: [debug]}
`
}

// The tests of this file run beside each other: each collector is another process,
// and none traces a workload.

func TestWithoutCapabilitiesTheCollectorKeepsRunning(t *testing.T) {
	t.Parallel()
	c := startCollector(t, toDebug("{error_mode: ignore}"), nobody())
	c.waitForLog("needs CAP_BPF and CAP_PERFMON", testbed.Patience)
	c.waitUntil("the status is a permanent error", testbed.Patience, func() bool {
		status := c.get(c.status, "/?verbose")
		return strings.Contains(status, "StatusPermanentError") && strings.Contains(status, "CAP_BPF and CAP_PERFMON")
	})
	time.Sleep(2 * time.Second)
	assert.True(t, c.running(), "the collector goes on")
	c.signal(syscall.SIGTERM)
	assert.Zero(t, c.exitCode(endLimit))
}

func TestWithoutCapabilitiesTheCollectorEnds(t *testing.T) {
	t.Parallel()
	c := startCollector(t, toDebug("{error_mode: propagate}"), nobody())
	assert.NotZero(t, c.exitCode(endLimit), "a service manager must see that it failed")
	assert.Contains(t, c.log.String(), "needs CAP_BPF and CAP_PERFMON")
}

// With the right to trace but not to look into processes of other users, what
// cannot be seen is said, once.
func TestWithoutPtraceWhatIsMissedIsSaid(t *testing.T) {
	t.Parallel()
	c := startCollector(t, toDebug("{collection_interval: 1s}"), nobody(capPerfmon, capBPF))
	c.waitUntil("tracing starts, or says what it lacks", testbed.Patience, func() bool {
		log := c.log.String()
		return strings.Contains(log, "without CAP_SYS_PTRACE") || strings.Contains(log, "RDMA tracing cannot start")
	})
	if strings.Contains(c.log.String(), "from 6.6 on CAP_BPF and CAP_PERFMON suffice") {
		t.Skip("this kernel has no uprobe multi links: without CAP_SYS_ADMIN nothing can be traced")
	}
	c.waitUntil("the status names the capability", testbed.Patience, func() bool {
		status := c.get(c.status, "/?verbose")
		return strings.Contains(status, "StatusRecoverableError") && strings.Contains(status, "CAP_SYS_PTRACE")
	})
	time.Sleep(3 * time.Second)
	c.signal(syscall.SIGTERM)
	assert.Zero(t, c.exitCode(endLimit))
	assert.Equal(t, 1, strings.Count(c.log.String(), "can be seen without"), "said once")
	assert.Contains(t, c.log.String(), "processes of other users have loaded")
}

func TestTwoReceiversFailToStart(t *testing.T) {
	t.Parallel()
	c := startCollector(t, `receivers:
  rdma:
  rdma/2:
exporters:
  debug:
service:
  pipelines:
    traces: {receivers: [rdma], exporters: [debug]}
    metrics: {receivers: [rdma/2], exporters: [debug]}
`, nil)
	assert.NotZero(t, c.exitCode(endLimit))
	assert.Contains(t, c.log.String(), "cannot run beside receiver")
	assert.Contains(t, c.log.String(), "would count everything twice")
}
