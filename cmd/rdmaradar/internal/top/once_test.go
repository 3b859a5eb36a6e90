package top

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteTable(&out, sample(), Options{Sort: "trouble"}, time.UTC))
	golden(t, "table.txt", out.String())
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, sample(), Options{Sort: "trouble", Filter: "rank:7"}))
	golden(t, "once.json", out.String())
	var back Document
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Len(t, back.Queues, 2)
}

// What shows nothing of the node says so, and is an error for scripts.
func TestBlind(t *testing.T) {
	for phase, says := range map[radar.Phase]string{
		radar.Absent:   "No rdma receiver runs in this collector",
		radar.Starting: "Tracing is starting",
		radar.Failed:   "Nothing is traced on this node: needs CAP_BPF",
	} {
		v := radar.View{Tracing: radar.Tracing{Phase: phase, Reason: "needs CAP_BPF"}}
		require.ErrorContains(t, Blind(&v), says)
		var out bytes.Buffer
		require.NoError(t, WriteTable(&out, &v, Options{Sort: "trouble"}, time.UTC))
		assert.Contains(t, out.String(), says)
	}
	assert.NoError(t, Blind(sample()))
	assert.NoError(t, Blind(&radar.View{Tracing: radar.Tracing{Phase: radar.Impaired}}))
}

func TestHeadlines(t *testing.T) {
	trouble := map[int]radar.Trouble{0: {Last: moment.UnixMilli() - 1000}}
	for says, v := range map[string]radar.View{
		"Not everything can be seen: without CAP_SYS_PTRACE":        {Tracing: radar.Tracing{Phase: radar.Impaired, Reason: "without CAP_SYS_PTRACE"}},
		"Slow now and then on 1 queue, too little for an incident.": {Queues: radar.QueueTable{QP: []uint32{1}, Troubles: trouble}},
		"Nothing is slow.": {Now: radar.Pace{Queues: 2}},
		"This node has no RDMA device: /sys/class/infiniband lists none.":                                      {Machine: radar.Machine{Read: true}},
		"No RDMA queue is in use. Queues appear as soon as a process, or a consumer in the kernel, makes one.": {},
	} {
		v.At = moment.UnixMilli()
		assert.Equal(t, says, scopeOf(&v, "").headline(time.UTC)[0].text)
	}
}

func TestUnknownOrder(t *testing.T) {
	assert.ErrorContains(t, Options{Sort: "colour"}.Check(), `no order "colour": sort by trouble, slow`)
	assert.NoError(t, Options{Sort: "p99.9"}.Check())
}
