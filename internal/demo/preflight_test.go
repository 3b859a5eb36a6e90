package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	assert.Equal(t, []string{"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"}, missingCapabilities(0))
	assert.Equal(t, []string{"CAP_PERFMON"}, missingCapabilities(1<<unix.CAP_BPF|1<<unix.CAP_SYS_PTRACE|1<<unix.CAP_DAC_READ_SEARCH))
	assert.Empty(t, missingCapabilities(^uint64(0)))
}

func TestMissingProgramIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "otelcol-rdma")
	assert.ErrorContains(t, checkPrograms(path), path)
	assert.NoError(t, checkPrograms("/proc/self/exe"))
}
