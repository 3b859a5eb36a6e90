//go:build browser

package browser

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/rdmaradar/rdmaradar/extension/rdmaradarextension"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	token = "ThisTokenIsForTests1"
	// history is for how long a scene has gone on when the page is opened.
	history = 8 * time.Minute
)

// serve starts the extension and returns it as a board, with the URL of its page.
func serve(t *testing.T) (radar.Board, string) {
	t.Helper()
	factory := rdmaradarextension.NewFactory()
	cfg := factory.CreateDefaultConfig().(*rdmaradarextension.Config)
	port := testbed.FreePort(t)
	cfg.HTTP.NetAddr.Endpoint = fmt.Sprintf("localhost:%d", port)
	cfg.Token = token
	extension, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, extension.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, extension.Shutdown(context.Background())) })
	return extension.(radar.Board), fmt.Sprintf("http://localhost:%d/%s/", port, token)
}

// scene is a node that is made up: a job of several ranks on several devices.
type scene struct {
	state  *radar.State
	queues []verbs.QueueInfo
	random *rand.Rand
	// name is what the processes are called.
	name string
	// sick is the queue that becomes slow, -1 for none, from the moment on.
	sick  int
	since time.Time
	// nodes are the NUMA nodes on which the pollers run.
	nodes map[uint32]int
}

// newScene has so many queues, on eight devices and in eight processes.
func newScene(queues int) *scene {
	s := &scene{state: radar.NewState(), random: rand.New(rand.NewPCG(1, 2)), name: "python3", sick: -1, nodes: map[uint32]int{}}
	s.state.Name(radar.Node{Host: "gpu-017", Version: "v0.1.0"})
	s.state.Open(radar.Source{Identify: s.identify})
	for i := range queues {
		q := verbs.QueueInfo{
			ID:     verbs.QueueID{Process: verbs.ProcessID{TGID: uint32(41000 + i%8), Incarnation: 1}, Context: 1, QPNumber: uint32(0x1800 + i)},
			Poller: uint32(41100 + i%8), Type: 2, RemoteQP: uint32(0x2800 + i), Device: fmt.Sprintf("mlx5_%d", i%8), Port: 1, State: verbs.QueueSynced, Limit: 256,
			Traffic: verbs.Traffic{Generation: uint64(i + 1)},
		}
		q.Path.GIDType = verbs.GIDTypeRoCEv2
		q.Path.RemoteGID = verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: byte(i % 8), 14: byte(i / 8 % 250), 15: 1}
		s.queues = append(s.queues, q)
	}
	for rank := range 8 {
		// The one with rank 5 polls on the wrong socket.
		s.nodes[uint32(41100+rank)] = rank / 4
		if rank == 5 {
			s.nodes[uint32(41100+rank)] = 0
		}
	}
	return s
}

// equip has the node be one with two sockets, eight NICs and eight GPUs. Its devices
// have other names than the queues, which are given theirs.
func (s *scene) equip(t *testing.T) {
	t.Helper()
	reader := fabric.NewReader(fabrictest.Tree(t, fabrictest.TwoSockets))
	logger := slog.New(slog.DiscardHandler)
	sample := fabric.NewSampler(reader, fabric.NewCounterReader(reader, nil, nil, logger, time.Now), nil, logger).Sample()
	gpus, err := reader.GPUs()
	require.NoError(t, err)
	s.state.Equip(radar.MachineOf(sample.Devices, gpus))
	ofNode := map[int][]string{}
	for _, d := range sample.Devices {
		ofNode[*d.NUMANode] = append(ofNode[*d.NUMANode], d.Name)
	}
	for i := range s.queues {
		rank := i % 8
		s.queues[i].Device = ofNode[rank/4][rank%4]
	}
}

func (s *scene) identify(id verbs.ProcessID) radar.Process {
	rank := int(id.TGID - 41000)
	return radar.Process{PID: id.TGID, Name: s.name, Service: "llm-training", Rank: &rank, Job: "81512"}
}

// look is a second of work of all queues.
func (s *scene) look(at time.Time) {
	queues := make([]verbs.QueueInfo, len(s.queues))
	sick := s.sick >= 0 && at.After(s.since)
	for i := range s.queues {
		q := &s.queues[i]
		q.Outstanding = uint32(s.random.IntN(24))
		q.Peak = max(q.Outstanding, uint32(24+s.random.IntN(8)))
		q.Oldest = time.Duration(1+s.random.IntN(4)) * time.Microsecond
		// Around 2.2 µs, with a tail.
		work := uint32(40_000 + s.random.IntN(2000))
		for tail := range uint32(8) {
			q.Traffic.Durations[7+tail] += work >> (2 * tail)
		}
		q.Traffic.Durations[15+s.random.IntN(2)] += uint32(s.random.IntN(2))
		q.Traffic.Bytes += uint64(work) * 65536
		if i == s.sick && sick {
			for range 40 {
				q.Traffic.Durations[22+s.random.IntN(3)]++
				q.Traffic.Slow++
			}
		}
		queues[i] = *q
	}
	s.state.Look(at, &verbs.Snapshot{Queues: queues}, s.nodes)
}

// trouble is a second of what is slow on the sick queue.
func (s *scene) trouble(at time.Time) {
	if s.sick < 0 || at.Before(s.since) {
		return
	}
	q := &s.queues[s.sick]
	worst := time.Duration(380+s.random.IntN(120)) * time.Microsecond
	stages := [verbs.NumStages]time.Duration{verbs.StagePost: 800, verbs.StageQueue: 40 * time.Microsecond, verbs.StageDevice: worst * 8 / 10, verbs.StagePoll: 3 * time.Microsecond}
	s.state.Judge([]radar.Burst{{
		Queue: q.ID, Device: q.Device, First: at.Add(-900 * time.Millisecond), Last: at, Slow: 40, Lost: 40 * worst / 2, Worst: worst, Stages: stages,
		Cause: "pfc_received", Title: "pause frames (PFC) received by the port",
	}})
	s.state.Slow([]radar.Request{{
		At: at.UnixMilli(), Queue: radar.QueueName{PID: q.ID.Process.TGID, Device: q.Device, QP: q.ID.QPNumber}, Process: s.identify(q.ID.Process),
		Operation: "rdma_write_with_imm", Bytes: 524288, Duration: int64(worst), Excess: int64(worst - 20*time.Microsecond),
		Stages: radar.StagesOf(&stages), Cause: "pfc_received", Locality: []string{"local", "remote"}[s.random.IntN(2)],
	}})
}

// incident tells of the trouble until now.
func (s *scene) incident(now time.Time) {
	if s.sick < 0 {
		return
	}
	q := &s.queues[s.sick]
	s.state.Tell(radar.Incident{
		ID: "5fd2", Open: true, Subject: fmt.Sprintf("QP 0x%x on %s (rank 3)", q.ID.QPNumber, q.Device),
		Happened: "up to 487 µs instead of 2.2 µs, 5 812 times in 2 min 24 s", Cause: "pfc_received", Title: "pause frames (PFC) received by the port",
		Confidence: "likely", For: []string{"rx_prio3_pause rose by 21 408 in the 10 s around it", "the time was in stage device: 88 %", "the other 7 queues on mlx5_3 were slow at the same time"},
		Against: []string{"no retransmission was counted"}, Missing: []string{"the counters of the switch port"}, Others: []string{"network congestion"},
		Remedy: "Find the receiver that cannot keep up: the switch port towards it shows pause frames sent.",
		Device: q.Device, First: s.since.UnixMilli(), Last: now.UnixMilli(), Slow: 5812, Lost: int64(1300 * time.Millisecond),
		Queues: []radar.QueueName{{PID: q.ID.Process.TGID, Device: q.Device, QP: q.ID.QPNumber}},
	})
}

func (s *scene) collect() {
	s.state.Collect(&verbs.Snapshot{
		WQEs:        verbs.WQEBalance{Posted: 921_884_112, Delivered: 115_235_514, Retired: 806_648_598, Lost: map[string]uint64{"resync": 0}},
		Completions: verbs.CompletionBalance{Seen: 115_236_002, Matched: 115_235_514, Unsynced: 488},
		Losses:      map[string]uint64{"ring_buffer_full": 0, "usual_for_its_kind": 1204},
		// Queues over the bound are in no table.
		UntrackedQueues: 12,
		Probes: []verbs.ProbeInfo{
			{Library: "/usr/lib/x86_64-linux-gnu/libmlx5.so.1.24.44.0", Provider: "mlx5", Functions: []string{"post_send", "post_recv"}, Mode: "windows", Link: "multi", Used: true, Observed: 1, Paid: 0.014},
			{Library: "/usr/lib/x86_64-linux-gnu/libmlx5.so.1.24.44.0", Provider: "mlx5", Functions: []string{"poll_cq"}, Mode: "site", Link: "multi", Used: true, Observed: 0.998, Paid: 0.014},
			{Provider: "ib_core", Functions: []string{"ib_create_qp_user", "ib_modify_qp_with_udata"}, Mode: "control", Link: "fentry"},
		},
	})
}

// play has the scene go on until the end of the test, after its history.
func (s *scene) play(t *testing.T) {
	t.Helper()
	now := time.Now()
	s.since = now.Add(-144 * time.Second)
	// Of many queues a shorter time will do.
	begin := now.Add(-min(history, time.Duration(200_000/max(len(s.queues), 1))*time.Second))
	for at := begin; at.Before(now); at = at.Add(time.Second) {
		s.look(at)
		s.trouble(at)
	}
	s.collect()
	s.incident(now)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case at := <-tick.C:
				s.look(at)
				s.trouble(at)
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}
