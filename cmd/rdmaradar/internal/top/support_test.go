package top

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares with a file of testdata, and writes it with UPDATE_GOLDEN=1.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "UPDATE_GOLDEN=1 writes it")
	assert.Equal(t, string(want), got)
}

var moment = time.Date(2026, 11, 30, 3, 12, 44, 0, time.UTC)

// sample is a node with four queues, one of which is slow, and one that does not
// complete.
func sample() *radar.View {
	node, rank := 0, 7
	now := moment.UnixMilli()
	return &radar.View{
		At: now, Node: radar.Node{Host: "node-7"}, Tracing: radar.Tracing{Phase: radar.Running},
		Now:  radar.Pace{Queues: 4, Untimed: 1, Completions: 1_234_567, Bytes: 39e9, P50: 1_900, P99: 45_000},
		Cost: radar.Cost{Cores: 0.031},
		Queues: radar.QueueTable{
			Over: 90e9, Processes: []radar.Process{{PID: 4242, Name: "python3", Rank: &rank, Job: "81"}, {Name: "nvme_rdma", Kernel: true}, {PID: 9, Name: "größe 数"}},
			Devices: []string{"mlx5_3", "mlx5_0"}, Peers: []string{"10.0.0.9", "fe80::1"},
			Process: []int{0, 0, 1, 2}, Device: []int{0, 0, 1, 1}, Peer: []int{0, 1, -1, 0},
			QP: []uint32{0x18f2, 0x18f3, 0x44, 0x45}, RemoteQP: []uint32{0x99, 0, 0, 0},
			Type: []string{"RC", "RC", "RC", "UD"}, State: []string{"synced", "synced", "synced", "unsynced"},
			Outstanding: []uint32{12, 3, 0, 1}, Peak: []uint32{96, 4, 2, 1}, Limit: []uint32{128, 128, 0, 0},
			Node: []int{1, 0, -1, -1}, Oldest: []int64{400_000, 4_200_000_000, 0, 0},
			Rate: []float64{40_000, 12.3, 812, 0}, Throughput: []float64{4e9, 1e3, 0, 0},
			Completions: []uint64{2_400_000, 700, 50_000, 0}, P50: []int64{1_900, 1_900, 20_000, 0}, P99: []int64{380_000, 2_700, 28_000, 0},
			P999: []int64{450_000, 2_700, 30_000, 0}, Worst: []int64{5_300_000, 2_700, 41_000, 0}, Slow: []uint64{212, 0, 0, 0},
			Troubles: map[int]radar.Trouble{
				0: {Since: now - 240_000, Last: now - 2_000, Slow: 900, Lost: 380_000_000, Worst: 5_300_000, Cause: "poller_preempted"},
				1: {Since: now - 4_000, Last: now, Stuck: 1, Cause: "hang"},
			},
		},
		Incidents: []radar.Incident{
			{
				ID: "1", Open: true, Subject: "QP 0x18f2 on mlx5_3 (rank 7)", Happened: "up to 5.3 ms instead of 1.9 µs, 900 times in 4 s",
				Cause: "poller_preempted", Title: "poller preempted", Confidence: "certain",
				For:    []string{"the polling thread wanted a CPU and had none for 96 % of the excess time", "stress-ng (thread 77) ran on its CPU instead"},
				Remedy: "Give the polling thread a CPU of its own: pin it and keep other threads away.", Device: "mlx5_3", First: now - 240_000, Last: now,
				Queues: []radar.QueueName{{PID: 4242, Device: "mlx5_3", QP: 0x18f2}},
			},
			{
				ID: "2", Open: true, Subject: "QP 0x18f3 on mlx5_3 (rank 7)", Happened: "1 send not completed, the oldest for 4.2 s", Cause: "hang", Title: "request that does not complete",
				Device: "mlx5_3", First: now - 4_000, Last: now, Queues: []radar.QueueName{{PID: 4242, Device: "mlx5_3", QP: 0x18f3}},
			},
			{ID: "3", Subject: "over", Happened: "over", Cause: "hang", Title: "request that does not complete", Device: "mlx5_3", First: now - 900_000, Queues: []radar.QueueName{{PID: 77, Device: "mlx5_3", QP: 0x18f2}}},
		},
		Machine: radar.Machine{Read: true, Devices: []radar.Device{{Name: "mlx5_3", Place: radar.Place{Node: &node}}}},
	}
}
