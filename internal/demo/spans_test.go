package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const exportedLine = `{"resourceSpans":[{"resource":{"attributes":[` +
	`{"key":"service.name","value":{"stringValue":"trainer"}},` +
	`{"key":"process.pid","value":{"intValue":"4711"}}]},` +
	`"scopeSpans":[{"scope":{"name":"s"},"spans":[{"traceId":"01","spanId":"02","name":"rdma_write mlx5_0","kind":1,` +
	`"startTimeUnixNano":"1790000000000000001","endTimeUnixNano":"1790000000000450001","attributes":[` +
	`{"key":"rdma.device.name","value":{"stringValue":"mlx5_0"}},` +
	`{"key":"rdma.qp.number","value":{"intValue":"273"}},` +
	`{"key":"rdma.operation.name","value":{"stringValue":"rdma_write"}},` +
	`{"key":"rdma.wr.size","value":{"intValue":1048576}},` +
	`{"key":"rdma.wqe.stage.post","value":{"doubleValue":0.0000005}},` +
	`{"key":"rdma.wqe.stage.device","value":{"doubleValue":0.000449}}]}]}]}]}`

func TestParseTraces(t *testing.T) {
	requests, err := parseTraces([]byte(exportedLine))
	require.NoError(t, err)
	require.Len(t, requests, 1)
	assert.Equal(t, slowRequest{
		Start:     time.Unix(0, 1790000000000000001),
		End:       time.Unix(0, 1790000000000450001),
		Process:   "trainer",
		PID:       4711,
		Device:    "mlx5_0",
		QP:        273,
		Operation: "rdma_write",
		Bytes:     1 << 20,
		Stages:    map[string]time.Duration{"post": 500 * time.Nanosecond, "device": 449 * time.Microsecond},
	}, requests[0])
	assert.Equal(t, 450*time.Microsecond, requests[0].Duration())
}

// TestForeignNamesStayOffTheTerminal: names of other processes are not escape
// sequences any more when they are printed.
func TestForeignNamesStayOffTheTerminal(t *testing.T) {
	line := strings.ReplaceAll(exportedLine, "trainer", `\u001b[2Ja\nb\u009b\u202e`)
	requests, err := parseTraces([]byte(line))
	require.NoError(t, err)
	require.Len(t, requests, 1)
	assert.Equal(t, "\uFFFD[2Ja\uFFFDb\uFFFD\uFFFD", requests[0].Process)
}

func TestParseTracesSaysWhatIsWrong(t *testing.T) {
	for _, line := range []string{"", "{", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"soon"}]}]}]}`} {
		_, err := parseTraces([]byte(line))
		assert.ErrorContains(t, err, "not OTLP", "%q", line)
	}
}

func FuzzParseTraces(f *testing.F) {
	f.Add([]byte(exportedLine))
	f.Add([]byte(`{"resourceSpans":[{}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		requests, err := parseTraces(line)
		if err != nil && requests != nil {
			t.Fatal("both requests and an error")
		}
		for _, request := range requests {
			formatStages(request.Stages)
			formatBytes(request.Bytes)
			formatDuration(request.Duration())
		}
	})
}
