package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseProfile(t *testing.T) {
	report := `    30.00%;[k] irqentry_exit_to_user_mode
    20.00% ;[k] copy_from_user_nofault
    15.00% ;[k] bpf_prog_d4d8abe054875416_enter_post_send
     5.00% ;[k] bpf_prog_e1db6e6a0910f16e_completion_site
     6.00% ;[k] bpf_task_storage_get_recur
     2.00% ;[k] htab_map_hash
     2.00% ;[k] read_tsc

`
	profile, err := parseProfile(report)
	require.NoError(t, err)
	shares := map[string]float64{}
	sum := 0.0
	for _, p := range profile {
		shares[p.Part] = p.Share
		sum += p.Share
	}
	assert.InDelta(t, 1, sum, 1e-9)
	assert.InDelta(t, 30.0/80, shares[partTrap], 1e-9)
	assert.InDelta(t, 20.0/80, shares[partPrograms], 1e-9)
	assert.InDelta(t, 20.0/80, shares[partReads], 1e-9)
	assert.InDelta(t, 6.0/80, shares[partThread], 1e-9)

	_, err = parseProfile("no data\n")
	assert.Error(t, err)
	_, err = parseProfile("x% ;[k] read_tsc\n")
	assert.Error(t, err)
}
