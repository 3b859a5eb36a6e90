package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	begin := time.Unix(1790000000, 0)
	at := func(microseconds int) time.Time { return begin.Add(time.Duration(microseconds) * time.Microsecond) }
	took := func(qp uint32, start, duration int) trueRequest {
		return trueRequest{Device: "sim0", QP: qp, Posted: at(start), Delivered: at(start + duration)}
	}
	spike := func(start, duration int) trueRequest {
		request := took(7, start, duration)
		request.Delay = 450 * time.Microsecond
		return request
	}
	exported := func(qp uint32, start, duration int) slowRequest {
		return slowRequest{PID: 42, Device: "sim0", QP: qp, Start: at(start), End: at(start + duration)}
	}
	tests := []struct {
		name     string
		slow     []trueRequest
		exported []slowRequest
		want     verdict
		err      string
	}{
		{
			name:     "all seen, in any order",
			slow:     []trueRequest{spike(0, 454), spike(100_000, 454)},
			exported: []slowRequest{exported(7, 100_030, 450), exported(7, -1, 454)},
			want:     verdict{injected: 2, seen: 2, errors: []float64{4.0 / 454, 0}},
		},
		{
			name:     "one that waited behind the spike is told from it",
			slow:     []trueRequest{spike(0, 454), took(7, 100, 350)},
			exported: []slowRequest{exported(7, 101, 349), exported(7, 1, 453)},
			want:     verdict{injected: 1, seen: 1, other: 1, errors: []float64{1.0 / 454}},
		},
		{
			name:     "one missing, the other is not taken for it",
			slow:     []trueRequest{spike(0, 454), took(7, 100, 350)},
			exported: []slowRequest{exported(7, 101, 349)},
			want:     verdict{injected: 1, other: 1},
			err:      "1 of 1 spikes were not exported",
		},
		{
			name: "missing ones are said with what to look at",
			slow: []trueRequest{spike(0, 454)},
			want: verdict{injected: 1},
			err:  "max_exported_per_second",
		},
		{
			name:     "the workload lost its processor after the poll",
			slow:     []trueRequest{spike(0, 3000), took(7, 10_000, 5000)},
			exported: []slowRequest{exported(7, 1, 455), exported(7, 13_000, 300)},
			want:     verdict{injected: 1, seen: 1, other: 1, errors: []float64{2545.0 / 3000}},
		},
		{
			name:     "exported twice",
			slow:     []trueRequest{spike(0, 454)},
			exported: []slowRequest{exported(7, 0, 454), exported(7, 0, 454)},
			want:     verdict{injected: 1, seen: 1, unexplained: 1, errors: []float64{0}},
			err:      "1 exported requests were not slow",
		},
		{
			name:     "wrong queue",
			slow:     []trueRequest{spike(0, 454)},
			exported: []slowRequest{exported(8, 0, 454)},
			want:     verdict{injected: 1, unexplained: 1},
			err:      "1 of 1 spikes were not exported",
		},
		{
			name:     "wrong time",
			slow:     []trueRequest{spike(0, 454)},
			exported: []slowRequest{exported(7, -101, 454)},
			want:     verdict{injected: 1, unexplained: 1},
			err:      "1 of 1 spikes were not exported",
		},
		{
			name:     "duration too short",
			slow:     []trueRequest{spike(0, 454)},
			exported: []slowRequest{exported(7, 0, 427)},
			want:     verdict{injected: 1, seen: 1, wrong: 1, errors: []float64{27.0 / 454}},
			err:      "durations of 1 of 1 spikes",
		},
		{
			name:     "duration too long",
			slow:     []trueRequest{spike(0, 454)},
			exported: []slowRequest{exported(7, 0, 477)},
			want:     verdict{injected: 1, seen: 1, wrong: 1, errors: []float64{23.0 / 454}},
			err:      "durations of 1 of 1 spikes",
		},
		{
			name:     "same queue of another process",
			slow:     []trueRequest{spike(0, 454)},
			exported: []slowRequest{{PID: 43, Device: "sim0", QP: 7, Start: at(0), End: at(454)}},
			want:     verdict{injected: 1, foreign: 1},
			err:      "1 of 1 spikes were not exported",
		},
		{
			name: "nothing injected",
			err:  "injected no spike",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := judge(truth{pid: 42, slow: test.slow}, test.exported)
			assert.InDeltaSlice(t, test.want.errors, got.errors, 1e-9)
			got.errors = test.want.errors
			assert.Equal(t, test.want, got)
			if test.err == "" {
				assert.NoError(t, got.err())
			} else {
				assert.ErrorContains(t, got.err(), test.err)
			}
		})
	}
}

func TestVerdictPrints(t *testing.T) {
	var out bytes.Buffer
	verdict{injected: 60, seen: 60, errors: []float64{0.2, 0.0123, 0}, other: 4}.print(&out)
	assert.Contains(t, out.String(), "spikes seen          60")
	assert.Contains(t, out.String(), "1.23 %")
}

// What other processes on the machine do is not the demonstration's.
func TestLatestIsOfTheJobAlone(t *testing.T) {
	exported := []slowRequest{{PID: 42, Late: time.Second}, {PID: 43, Late: time.Hour}, {PID: 42, Late: 2 * time.Second}}
	assert.Equal(t, 2*time.Second, latest(42, exported))
	require.NoError(t, checkLatest(latest(42, exported)))
	assert.Error(t, checkLatest(latest(43, exported)))
}
