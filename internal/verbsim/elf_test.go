package verbsim

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func checkSymbols(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Symbols()
	require.ErrorIs(t, err, elf.ErrNoSymbols)
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	var exported []string
	imported := map[string]string{}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			imported[s.Name] = s.Version
		} else {
			exported = append(exported, s.Name)
		}
	}
	assert.Equal(t, []string{"verbsim_api"}, exported)
	assert.Equal(t, "IBVERBS_PRIVATE_34", imported["verbs_set_ops"])
	assert.Equal(t, "IBVERBS_PRIVATE_34", imported["_verbs_init_and_alloc_context"])
}

// monotonic is the clock of the workload, in nanoseconds.
func monotonic(t *testing.T) uint64 {
	t.Helper()
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return uint64(ts.Nano())
}
