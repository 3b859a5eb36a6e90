package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func writeTruth(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "truth.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestReadTruthListsEachRequestOnce(t *testing.T) {
	path := writeTruth(t, `{"scenario":"nccl","pid":7,"ok":true,"monotonic_to_realtime_offset_ns":1000000,
		"spikes":[{"delay_ns":450000,"device":"sim0","ctx":1,"qp_num":17,"post_ns":5000,"completion_ns":460000}],
		"slow_total":2,"slow":[
		{"device":"sim0","ctx":1,"qp_num":17,"post_ns":5000,"completion_ns":460000},
		{"device":"sim0","ctx":1,"qp_num":18,"post_ns":6000,"completion_ns":206000}]}`)
	got, err := readTruth(path)
	require.NoError(t, err)
	assert.Equal(t, truth{pid: 7, slow: []trueRequest{
		{Device: "sim0", QP: 17, Posted: time.Unix(0, 1005000), Delivered: time.Unix(0, 1460000), Delay: 450 * time.Microsecond},
		{Device: "sim0", QP: 18, Posted: time.Unix(0, 1006000), Delivered: time.Unix(0, 1206000)},
	}}, got)
	assert.Equal(t, 455*time.Microsecond, got.slow[0].Duration())
}

func TestReadTruthSaysWhatIsWrong(t *testing.T) {
	_, err := readTruth(filepath.Join(t.TempDir(), "absent"))
	assert.ErrorContains(t, err, "no account")
	_, err = readTruth(writeTruth(t, "{"))
	assert.ErrorContains(t, err, "truth.json")
	_, err = readTruth(writeTruth(t, `{"slow_total":3,"slow":[]}`))
	assert.ErrorContains(t, err, "0 of 3")
}
