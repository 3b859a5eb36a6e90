package rdmareceiver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// theTitles are what people call the causes of the tests.
func theTitles(cause string) string {
	if cause == "pcie_back_pressure" {
		return "PCIe back-pressure at the NIC"
	}
	return cause
}

// fullIncident has a value for everything.
func fullIncident() incident.Incident {
	return incident.Incident{
		ID: "00000000000000aa", Device: "mlx5_0", Port: 1, Process: trainer,
		Verdict: diagnose.Verdict{
			Cause: "pcie_back_pressure", Confidence: diagnose.Likely,
			For:     []diagnose.Evidence{{Name: "stalls", Text: "the NIC waited for PCIe in 41 % of the time"}, {Name: "share", Text: "94 % of the time was in stage device"}},
			Against: []diagnose.Evidence{{Name: "drops", Text: "no packet was dropped for want of buffers"}},
			Missing: []string{"counters of the switch"}, Others: []string{"pfc_received"},
			Remedy: "bind rank 337 to node 1",
		},
		First: 5_000_000_000, Last: 9_000_000_000,
		Slow: 212, Excess: 80 * time.Millisecond, Worst: 380 * time.Microsecond, Normal: 1900 * time.Nanosecond,
		WorstQueue: verbs.QueueID{Process: trainer, QPNumber: 0x18f2},
		Stuck:      2, Oldest: 1250 * time.Millisecond, Idle: 1400 * time.Millisecond,
		WorstQueues: []verbs.QueueID{{Process: trainer, QPNumber: 0x18f2}}, Bursts: 1, Clearest: 380 * time.Microsecond,
		Queues:    incident.List[verbs.QueueID]{Values: []verbs.QueueID{{Process: trainer, QPNumber: 0x18f2}}},
		Processes: incident.List[verbs.ProcessID]{Values: []verbs.ProcessID{trainer}},
		Names:     incident.List[string]{Values: []string{"python3"}}, Ranks: incident.List[int]{Values: []int{337}},
		Spans: []incident.Span{{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Duration: 380 * time.Microsecond}, {TraceID: [16]byte{3}, SpanID: [8]byte{4}}},
	}
}

// slowOnly is an incident of slow completions alone, which a test changes.
func slowOnly(change func(*incident.Incident)) incident.Incident {
	i := fullIncident()
	i.Stuck, i.Oldest, i.Idle = 0, 0, 0
	change(&i)
	return i
}

func theVerdict(state incident.State, i incident.Incident) verdictEvent {
	e := newVerdictEvent(incident.Record{State: state, Incident: i}, theTitles, theClock(), 9_500_000_000)
	if i.Process != (verbs.ProcessID{}) {
		facts, _ := theHost().processes.Facts(i.Process)
		e.process = identityOf(facts)
	}
	return e
}

func TestVerdictText(t *testing.T) {
	const why = " Cause: PCIe back-pressure at the NIC (likely). For: the NIC waited for PCIe in 41 % of the time; 94 % of the time was in stage device. Against: no packet was dropped for want of buffers. Bind rank 337 to node 1."
	unknown := diagnose.Verdict{Cause: diagnose.Unknown, Missing: []string{"the counters of the port", "how the poller was scheduled"}}
	for name, test := range map[string]struct {
		state    incident.State
		incident incident.Incident
		want     string
	}{
		"one queue pair": {
			incident: slowOnly(func(*incident.Incident) {}),
			want:     "QP 0x18f2 on mlx5_0 (rank 337): up to 380 µs instead of 1.9 µs, 212 times in 4 s." + why,
		},
		"over": {
			state:    incident.Closed,
			incident: slowOnly(func(*incident.Incident) {}),
			want:     "Over. QP 0x18f2 on mlx5_0 (rank 337): up to 380 µs instead of 1.9 µs, 212 times in 4 s." + why,
		},
		"once, and nothing is known": {
			incident: slowOnly(func(i *incident.Incident) {
				i.Slow, i.Normal, i.Device, i.Verdict = 1, 0, "", unknown
				i.Ranks = incident.List[int]{}
			}),
			want: "QP 0x18f2 (python3, pid 4242): 380 µs, once. Cause: unknown. What would tell: the counters of the port; how the poller was scheduled.",
		},
		"many": {
			incident: slowOnly(func(i *incident.Incident) {
				i.Queues.Values, i.Queues.More = append(i.Queues.Values, verbs.QueueID{QPNumber: 1}), 20
				i.WorstQueues = []verbs.QueueID{{QPNumber: 1}, {QPNumber: 0x18f2}, {QPNumber: 0x20}}
				i.Ranks = incident.List[int]{Values: []int{1, 2, 3, 4}, More: 5}
			}),
			want: "QPs 0x1, 0x18f2, 0x20 and 19 more on mlx5_0 (ranks 1, 2, 3 and 6 more): up to 380 µs instead of 1.9 µs, 212 times in 4 s." + why,
		},
		"one of many has a rank": {
			incident: slowOnly(func(i *incident.Incident) { i.Unranked = 7 }),
			want: "QP 0x18f2 on mlx5_0 (rank 337, and 7 processes without a rank): up to 380 µs instead of 1.9 µs, 212 times in 4 s." +
				why,
		},
		"one of several has none": {
			incident: slowOnly(func(i *incident.Incident) { i.Ranks.Values, i.Unranked = []int{1, 2, 3, 4}, 1 }),
			want:     "QP 0x18f2 on mlx5_0 (ranks 1, 2, 3 and 1 more, and 1 process without a rank): up to 380 µs instead of 1.9 µs, 212 times in 4 s." + why,
		},
		"two queue pairs": {
			incident: slowOnly(func(i *incident.Incident) {
				i.Queues.Values = append(i.Queues.Values, verbs.QueueID{QPNumber: 1})
				i.WorstQueues = append(i.WorstQueues, verbs.QueueID{QPNumber: 1})
			}),
			want: "QPs 0x18f2, 0x1 on mlx5_0 (rank 337): up to 380 µs instead of 1.9 µs, 212 times in 4 s." + why,
		},
		"several bursts": {
			incident: slowOnly(func(i *incident.Incident) { i.Bursts, i.Clearest = 5, 75*time.Microsecond }),
			want: "QP 0x18f2 on mlx5_0 (rank 337): up to 380 µs instead of 1.9 µs, 212 times in 4 s." +
				strings.Replace(why, " For:", " Evidence of the clearest of 5 bursts, up to 75 µs. For:", 1),
		},
		"several bursts without a cause": {
			incident: slowOnly(func(i *incident.Incident) { i.Bursts, i.Verdict = 5, unknown }),
			want: "QP 0x18f2 on mlx5_0 (rank 337): up to 380 µs instead of 1.9 µs, 212 times in 4 s. Cause: unknown. " +
				"What would tell: the counters of the port; how the poller was scheduled.",
		},
		"many programs without ranks": {
			incident: slowOnly(func(i *incident.Incident) {
				i.Ranks = incident.List[int]{}
				i.Names.Values = []string{"a", "b"}
				i.Processes.Values = []verbs.ProcessID{trainer, peer}
			}),
			want: "QP 0x18f2 on mlx5_0 (a, b): up to 380 µs instead of 1.9 µs, 212 times in 4 s." + why,
		},
		"stuck": {
			incident: slowOnly(func(i *incident.Incident) { i.Slow, i.Stuck, i.Oldest = 0, 3, 4200*time.Millisecond }),
			want:     "QP 0x18f2 on mlx5_0 (rank 337): 3 sends not completed, the oldest for 4.2 s." + why,
		},
		"stuck, and counted in the incident of another cause": {
			incident: slowOnly(func(i *incident.Incident) { i.Slow, i.Oldest = 0, 2700*time.Millisecond }),
			want:     "QP 0x18f2 on mlx5_0 (rank 337): sends not completed, the oldest for 2.7 s." + why,
		},
		"silent": {
			incident: slowOnly(func(i *incident.Incident) {
				i.Slow, i.Idle, i.Queues = 0, 1400*time.Millisecond, incident.List[verbs.QueueID]{}
			}),
			want: "python3 on mlx5_0 (rank 337): nothing posted for 1.4 s." + why,
		},
		"foreign names are cleaned": {
			incident: slowOnly(func(i *incident.Incident) {
				i.Ranks = incident.List[int]{}
				i.Names.Values = []string{"evil\n\x1b[2J"}
				i.Verdict = unknown
			}),
			want: "QP 0x18f2 on mlx5_0 (evil\uFFFD\uFFFD[2J, pid 4242): up to 380 µs instead of 1.9 µs, 212 times in 4 s. Cause: unknown. What would tell: the counters of the port; how the poller was scheduled.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, theVerdict(test.state, test.incident).body)
		})
	}
}

func TestVerdictsGolden(t *testing.T) {
	bare := incident.Incident{
		ID: "00000000000000ab", Verdict: diagnose.Verdict{Cause: diagnose.Unknown}, First: 5_000_000_000, Last: 5_000_450_000,
		Slow: 1, Excess: 400 * time.Microsecond, Worst: 450 * time.Microsecond,
		Queues: incident.List[verbs.QueueID]{Values: []verbs.QueueID{{QPNumber: 0x99}}}, WorstQueues: []verbs.QueueID{{QPNumber: 0x99}},
	}
	batch := logBatch{verdicts: []verdictEvent{
		theVerdict(incident.Opened, fullIncident()), theVerdict(incident.Opened, bare), theVerdict(incident.Closed, bare),
	}}
	requireGoldenLogs(t, "verdicts", buildLogs(batch, theSurroundings()))
}
