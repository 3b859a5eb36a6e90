package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// What the receiver needs to load its programs, to place probes and to read
// the processes of other users.
var capabilities = []struct {
	bit  uint
	name string
}{
	{unix.CAP_BPF, "CAP_BPF"},
	{unix.CAP_PERFMON, "CAP_PERFMON"},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
}

const kernelBTF = "/sys/kernel/btf/vmlinux"

// preflight names everything that this machine or user lacks, before anything
// is started.
func preflight() error {
	return errors.Join(checkPrivileges(), checkKernel())
}

func checkPrivileges() error {
	effective, err := effectiveCapabilities()
	if err != nil {
		return err
	}
	missing := missingCapabilities(effective)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing privilege: %s: run it as root (sudo make demo)", strings.Join(missing, ", "))
}

func effectiveCapabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("reading the capabilities of this process: %w", err)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

func missingCapabilities(effective uint64) []string {
	var missing []string
	for _, capability := range capabilities {
		if effective&(1<<capability.bit) == 0 {
			missing = append(missing, capability.name)
		}
	}
	return missing
}

func checkKernel() error {
	if _, err := os.Stat(kernelBTF); err != nil {
		return fmt.Errorf("this kernel has no type information (%w): it needs CONFIG_DEBUG_INFO_BTF, which distribution kernels from 5.15 on have", err)
	}
	return nil
}

func checkPrograms(paths ...string) error {
	var missing []error
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, fmt.Errorf("%w: \"make demo\" builds it", err))
		}
	}
	return errors.Join(missing...)
}
