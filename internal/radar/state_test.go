package radar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	trainer = verbs.ProcessID{TGID: 4242, Incarnation: 7}
	nvme    = verbs.ProcessID{TGID: verbs.KernelTGID | 1, Incarnation: 1}
)

// theSource knows two owners of queues, one of which has a name that is none.
func theSource() Source {
	rank := 9
	return Source{Identify: func(id verbs.ProcessID) Process {
		if id.InKernel() {
			return Process{Name: "nvme_rdma", Kernel: true, Service: "nvme_rdma"}
		}
		return Process{PID: id.TGID, Name: "</script><b>x", Service: "llm", Rank: &rank, Job: "815"}
	}}
}

// queue is a synced queue on which so many completions took so long, the bucket
// that this many is in being given.
func queue(owner verbs.ProcessID, number uint32, counts map[int]uint32) verbs.QueueInfo {
	q := verbs.QueueInfo{
		ID: verbs.QueueID{Process: owner, Context: 0x10, QPNumber: number}, Type: 2, RemoteQP: number + 1, Device: "mlx5_0", Port: 1,
		State: verbs.QueueSynced, Outstanding: 3, Peak: 7, Limit: 128, Oldest: 4 * time.Microsecond,
		Traffic: verbs.Traffic{Generation: 1},
	}
	q.Path.RemoteGID, q.Path.GIDType = verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: 9}, verbs.GIDTypeRoCEv2
	for bucket, n := range counts {
		q.Traffic.Durations[bucket] = n
		q.Traffic.Bytes += uint64(n) * 4096
	}
	return q
}

// bucketOf is the bucket that a duration is in.
func bucketOf(d time.Duration) int {
	for i := range verbs.QueueBuckets {
		if d <= verbs.QueueBucketEdge(i) {
			return i
		}
	}
	return verbs.QueueBuckets - 1
}

func snapshot(queues ...verbs.QueueInfo) *verbs.Snapshot { return &verbs.Snapshot{Queues: queues} }

func opened() *State {
	s := NewState()
	s.cost.spent = func() time.Duration { return 0 }
	s.Name(Node{Host: "node-1", Version: "v0.0.0-test"})
	s.Open(theSource())
	return s
}

// at is so many seconds after noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// The form of a view is what pages and commands are written for.
func TestViewIsGolden(t *testing.T) {
	s := opened()
	fast, slow := bucketOf(1900*time.Nanosecond), bucketOf(450*time.Microsecond)
	s.Look(at(0), snapshot(queue(trainer, 0x11, nil), queue(nvme, 0x12, nil)), nil)
	busy := queue(trainer, 0x11, map[int]uint32{fast: 990, slow: 10})
	busy.Traffic.Slow = 10
	s.Look(at(1), snapshot(busy, queue(nvme, 0x12, map[int]uint32{fast: 100})), nil)
	s.Judge([]Burst{{
		Queue: busy.ID, Device: "mlx5_0", First: at(0).Add(300 * time.Millisecond), Last: at(1),
		Slow: 10, Lost: 4480 * time.Microsecond, Worst: 456 * time.Microsecond,
		Stages: [verbs.NumStages]time.Duration{verbs.StageSubmit: 3000, verbs.StageCompletion: 4_500_000},
		Cause:  "pfc_received", Title: "PFC pause received",
	}})
	rank := 9
	s.Slow([]Request{{
		At: at(1).UnixMilli(), Queue: QueueName{PID: 4242, Device: "mlx5_0", QP: 0x11},
		Process: Process{PID: 4242, Name: "python3", Rank: &rank}, Operation: "rdma_write", Bytes: 32768,
		Duration: 456_000, Excess: 450_000, Stages: []Stage{{"submit", 300}, {"completion", 455_700}},
		Cause: "pfc_received", Locality: "local",
	}})
	s.Tell(Incident{
		ID: "1f", Open: true, Subject: "QP 0x11 on mlx5_0 (rank 9)", Happened: "up to 456 µs instead of 1.9 µs, 10 times in 1 s",
		Cause: "pfc_received", Title: "PFC pause received", Confidence: "likely", For: []string{"rx_prio3_pause rose by 812"},
		Remedy: "Look for the receiver that cannot keep up.", Device: "mlx5_0",
		First: at(0).UnixMilli(), Last: at(1).UnixMilli(), Slow: 10, Lost: 4_480_000, Queues: []QueueName{{PID: 4242, Device: "mlx5_0", QP: 0x11}},
	})
	s.Collect(&verbs.Snapshot{
		WQEs:        verbs.WQEBalance{Posted: 1106, Delivered: 1100, Outstanding: 6, Lost: map[string]uint64{"resync": 0}},
		Completions: verbs.CompletionBalance{Seen: 1100, Matched: 1100},
		Losses:      map[string]uint64{"ring_buffer_full": 2, "nested_call": 0},
		Probes:      []verbs.ProbeInfo{{Library: "/usr/lib/libmlx5.so.1", Provider: "mlx5", Functions: []string{"poll_cq"}, Mode: "site", Used: true, Observed: 1, Paid: 0.014, Link: "multi"}},
	})

	got, err := json.MarshalIndent(s.View(at(2), 0), "", "  ")
	require.NoError(t, err)
	requireGolden(t, "view.json", append(got, '\n'))
}

// requireGolden compares with a file of testdata. With UPDATE_GOLDEN set it writes
// the file, and fails so that this cannot go unnoticed.
func requireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
		t.Errorf("%s was written", path)
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(want, got) {
		assert.Equal(t, string(want), string(got))
	}
}

func TestPhasesOfTracing(t *testing.T) {
	assert.Equal(t, Tracing{Phase: Absent}, NoView(noon).Tracing)
	s := NewState()
	phase := func() Tracing { return s.View(noon, 0).Tracing }
	assert.Equal(t, Tracing{Phase: Starting}, phase())
	s.Open(theSource())
	assert.Equal(t, Tracing{Phase: Running}, phase())
	s.Impair(errors.New("CAP_SYS_PTRACE is missing"))
	assert.Equal(t, Tracing{Phase: Impaired, Reason: "CAP_SYS_PTRACE is missing"}, phase())
	s.Impair(nil)
	assert.Equal(t, Tracing{Phase: Running}, phase())
	s.Fail(errors.New("CAP_BPF is missing"))
	assert.Equal(t, Tracing{Phase: Failed, Reason: "CAP_BPF is missing"}, phase())
}

// A page that is made of a view reads lists and maps without asking whether they
// are there.
func TestEmptyViewHasNoNull(t *testing.T) {
	for name, view := range map[string]View{"none": NoView(noon), "opened": opened().View(noon, 0)} {
		text, err := json.Marshal(view)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "null", name)
	}
}

func TestWatched(t *testing.T) {
	s := NewState()
	assert.False(t, s.Watched())
	first, second := s.Watch(), s.Watch()
	first()
	first()
	assert.True(t, s.Watched(), "the second one still looks")
	second()
	assert.False(t, s.Watched())
}

func TestPeersCanBeHidden(t *testing.T) {
	s := opened()
	source := theSource()
	source.HidePeers = true
	s.Open(source)
	s.Look(at(0), snapshot(queue(trainer, 1, nil)), nil)
	text, err := json.Marshal(s.View(at(1), 0))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "10.0.0.9")
	assert.Equal(t, []int{-1}, s.View(at(1), 0).Queues.Peer)
}

func TestCostIsThatOfTheTimeBetweenViews(t *testing.T) {
	spent := time.Duration(0)
	meter := newCostMeter(at(0), func() time.Duration { return spent })
	assert.Zero(t, meter.view(at(0)).Cores, "no time has passed")
	spent = 40 * time.Millisecond
	assert.InDelta(t, 0.02, meter.view(at(2)).Cores, 1e-9, "the first view is of the time since the start")
	assert.InDelta(t, 0.02, meter.view(at(2).Add(time.Millisecond)).Cores, 1e-9, "too soon for another figure")
}

// What is fed and what is viewed goes on at once.
func TestStateIsSafeForConcurrentUse(t *testing.T) {
	s := opened()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			q := queue(trainer, uint32(i%5), map[int]uint32{20: uint32(i)})
			s.Look(at(i), snapshot(q), nil)
			s.Judge([]Burst{{Queue: q.ID, Device: "mlx5_0", First: at(i), Last: at(i), Slow: 1, Lost: 1, Cause: "unknown"}})
			s.Slow([]Request{{At: at(i).UnixMilli(), Excess: int64(i)}})
			s.Tell(Incident{ID: fmt.Sprint(i % 7), Open: i%2 == 0, Last: at(i).UnixMilli()})
			s.Collect(&verbs.Snapshot{})
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		_, err := json.Marshal(s.View(at(200), 0))
		require.NoError(t, err)
	}
}
