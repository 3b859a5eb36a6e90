package rdmareceiver

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	costRanks  = 8
	costQueues = 64
)

// costNode is the node of docs/cost.md: eight ports of InfiniBand, and a training
// job of eight ranks, each with 64 queue pairs to other nodes on a device of its own.
type costNode struct {
	t       *testing.T
	bench   *bench
	devices *sampledTree
	random  *rand.Rand
	// done is what each rank did so far.
	done [costRanks][]verbs.Series
	sent uint64
}

func newCostNode(t *testing.T, change func(*Config)) *costNode {
	t.Helper()
	cfg := defaultConfig()
	if change != nil {
		change(cfg)
	}
	processes := listedProcesses{}
	for rank := range costRanks {
		processes[costProcess(rank)] = process.Facts{
			PID: int(costProcess(rank).TGID), StartTicks: 1, Executable: "python3", Name: "python3", ServiceName: "llm-training", SlurmJobID: "81512", SlurmStepID: "0",
			Placement: process.Placement{Rank: pointer(rank), LocalRank: pointer(rank), WorldSize: pointer(8 * 128)},
		}
	}
	return &costNode{t: t, bench: newBench(t, processes, change), devices: sampleTree(t, fabrictest.TwoSockets, cfg), random: rand.New(rand.NewPCG(1, 2))}
}

func costProcess(rank int) verbs.ProcessID {
	return verbs.ProcessID{TGID: uint32(41000 + rank), Incarnation: 1}
}

func costDevice(rank int) string {
	return []string{"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"}[rank]
}

// collect lets ten seconds go by and returns what is exported then.
func (n *costNode) collect() pmetric.Metrics {
	metrics := n.bench.collect(n.snapshot())
	for rank := range costRanks {
		n.count(rank)
	}
	sample := n.devices.sampler.Sample()
	n.devices.at = n.devices.at.Add(10 * time.Second)
	n.devices.emitter.emit(metrics, &sample, n.bench.aggregator.transmitted)
	return metrics
}

func (n *costNode) snapshot() verbs.Snapshot {
	n.sent += 1 << 30
	snap := verbs.Snapshot{Probes: []verbs.ProbeInfo{
		{Library: "/usr/lib/libmlx5.so.1", Provider: "mlx5", Functions: []string{"poll_cq", "post_recv", "post_send"}, Mode: "site", Used: true, Observed: 1},
	}}
	for rank := range costRanks {
		snap.Series = append(snap.Series, n.work(rank)...)
		for _, kind := range []verbs.MemoryKind{verbs.MemoryHost, verbs.MemoryDMABuf} {
			snap.Registrations = append(snap.Registrations, verbs.Registrations{
				Process: costProcess(rank), Device: costDevice(rank), Kind: kind, Count: 40, Bytes: 1 << 30, Time: time.Second,
				DeregistrationTime: time.Millisecond, Regions: 12, RegionBytes: 1 << 29,
			})
		}
		for i := range costQueues {
			snap.Queues = append(snap.Queues, n.queue(rank, i))
		}
	}
	return snap
}

// work is what a rank did so far: NCCL's writes, the last of a message with immediate
// data, and the receives that those of its peers complete. One write in 1,000 is slow.
func (n *costNode) work(rank int) []verbs.Series {
	if n.done[rank] == nil {
		for _, operation := range []verbs.Operation{verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm, verbs.OpRecv} {
			key := verbs.SeriesKey{Process: costProcess(rank), Device: costDevice(rank), Operation: operation}
			n.done[rank] = append(n.done[rank], verbs.Series{Key: key, Min: 1800})
		}
	}
	for i := range n.done[rank] {
		s := &n.done[rank][i]
		count := uint64(90_000 + n.random.IntN(20_000))
		s.Completions, s.Requests, s.Bytes = s.Completions+count, s.Requests+count, s.Bytes+count<<19
		if s.Key.Operation != verbs.OpRecv {
			n.time(s, count)
		}
	}
	return append([]verbs.Series(nil), n.done[rank]...)
}

// time spreads completions over the buckets from 1.8 µs to 5 ms, half as many in each
// sixth one, and over every stage: which of them are known changes with the moments of
// evidence.
func (n *costNode) time(s *verbs.Series, count uint64) {
	low, high := bucketOf(1800), bucketOf(5*time.Millisecond)
	for bucket := low; bucket <= high; bucket++ {
		timed := count>>((bucket-low)/6+3) + uint64(n.random.IntN(3))
		s.Durations.Counts[bucket] += timed
		s.Timed += timed
	}
	s.Sum, s.Max = s.Sum+time.Duration(count)*4*time.Microsecond, 5*time.Millisecond
	for stage := range s.StageTime {
		s.StageTime[stage] += time.Duration(n.random.IntN(1e9))
	}
	s.Slow, s.Excess = s.Slow+count/1000, s.Excess+time.Duration(count)*400
}

// count has the port of a rank count what the rank did, in packets of 4 KiB.
func (n *costNode) count(rank int) {
	n.t.Helper()
	var bytes [2]uint64
	for _, s := range n.done[rank] {
		direction := 0
		if s.Key.Operation == verbs.OpRecv {
			direction = 1
		}
		bytes[direction] += s.Bytes
	}
	for name, value := range map[string]uint64{
		"port_xmit_data": bytes[0] / 4, "port_xmit_packets": bytes[0] >> 12, "port_xmit_wait": bytes[0] >> 16,
		"port_rcv_data": bytes[1] / 4, "port_rcv_packets": bytes[1] >> 12,
	} {
		fabrictest.Add(n.t, n.devices.root, fmt.Sprintf("class/infiniband/%s/ports/1/counters/%s = %d", costDevice(rank), name, value))
	}
}

// queue is one of the queue pairs of a rank. Eight lead to each peer.
func (n *costNode) queue(rank, i int) verbs.QueueInfo {
	q := routedQueue(costProcess(rank), uint32(0x1000+rank*costQueues+i), fmt.Sprintf("::ffff:10.%d.0.%d", rank, 2+i/8), n.sent>>6)
	q.Device, q.Outstanding, q.Peak = costDevice(rank), uint32(n.random.IntN(64)), uint32(64+n.random.IntN(64))
	q.Oldest, q.Path.LocalGID = time.Duration(n.random.IntN(1e5)), verbs.GID(netip.MustParseAddr(fmt.Sprintf("::ffff:10.%d.0.1", rank)).As16())
	return q
}

// costEvents are slow work requests, about as different as those of one second are.
func (n *costNode) costEvents(t *testing.T, count int) []slowEvent {
	t.Helper()
	var completions []verbs.Completion
	for i := range count {
		c := fullCompletion()
		c.Queue.QPNumber, c.Bytes, c.WRID = uint32(0x1000+n.random.IntN(512)), uint64(1+n.random.IntN(8))<<19, n.random.Uint64()
		c.Posted += uint64(i * 170_000_000)
		c.Delivered = c.Posted + uint64(100_000+n.random.IntN(900_000))
		c.Stages[verbs.StageDevice] = time.Duration(n.random.IntN(400_000))
		completions = append(completions, c)
	}
	return eventsWith(t, func(*Config) {}, completions...)
}
