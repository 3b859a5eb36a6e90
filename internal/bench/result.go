package main

import (
	"cmp"
	"slices"
)

// The modes that are compared, in the order of the table.
const (
	modeUntraced    = "untraced"
	modeBare        = "bare"
	modeOurs        = "ours"
	modeEntryReturn = "entry_return"
	modeBpftrace    = "bpftrace"
)

var modeNames = []string{modeUntraced, modeBare, modeOurs, modeEntryReturn, modeBpftrace}

// emptyPolls are the numbers of empty polls for every completion.
var emptyPolls = []string{"0", "10", "100", "1000"}

// result is what out/bench.json holds. A mode that could not be measured is
// missing; Notes say why.
type result struct {
	Machine machine `json:"machine"`
	// Rounds is how many measurements every median is of.
	Rounds int `json:"rounds"`
	// PollNs is the time of one poll by mode and by the number of empty polls
	// for every completion, PostNs that of a post of one request.
	PollNs map[string]map[string]float64 `json:"poll_ns"`
	PostNs map[string]float64            `json:"post_ns"`
	// PollSpread is the distance between the quartiles of what PollNs and
	// PostNs are medians of, as a share of the median.
	PollSpread map[string]map[string]float64 `json:"poll_spread"`
	PostSpread map[string]float64            `json:"post_spread"`
	// Probes are the places where the tracer stood in the measured library.
	Probes []placeResult `json:"probes"`
	// Programs is the cost of each BPF program of the tracer, measured by the
	// kernel while the loop ran.
	Programs []programResult `json:"programs"`
	// Profile is where the kernel spends the time of posts and completions that
	// are observed; empty where perf is missing.
	Profile  []profilePart      `json:"profile"`
	AttachMs map[string]float64 `json:"attach_ms"`
	DetachMs map[string]float64 `json:"detach_ms"`
	Agent    []agentResult      `json:"agent"`
	Page     []pageResult       `json:"page"`
	QPs      []queueResult      `json:"qps"`
	Notes    []string           `json:"notes"`
}

type machine struct {
	Kernel      string  `json:"kernel"`
	Processor   string  `json:"processor"`
	CPUs        int     `json:"cpus"`
	Virtual     bool    `json:"virtual"`
	LoadAtStart float64 `json:"load_at_start"`
	LoadAtEnd   float64 `json:"load_at_end"`
}

type placeResult struct {
	Program string `json:"program"`
	Offset  uint64 `json:"offset"`
	Return  bool   `json:"return"`
}

type programResult struct {
	Name string `json:"name"`
	// RunCount is how often it ran, NsPerRun the time it took each time: the
	// trap, which costs more, is not in it.
	RunCount uint64  `json:"run_cnt"`
	NsPerRun float64 `json:"ns_per_run"`
}

type agentResult struct {
	// AskedPerSecond is the programmed rate, 0: as many as the machine makes.
	AskedPerSecond int `json:"asked_per_s"`
	// CompletionsPerSecond is the rate that was reached.
	CompletionsPerSecond float64 `json:"completions_per_s"`
	// SlowShare is the programmed share, SlowMeasured what the workload saw:
	// on a busy machine its own thread is late, too.
	SlowShare    float64 `json:"slow_share"`
	SlowMeasured float64 `json:"slow_share_measured"`
	CPUCores     float64 `json:"cpu_cores"`
	RSSBytes     uint64  `json:"rss_bytes"`
	MapBytes     uint64  `json:"map_bytes"`
}

type pageResult struct {
	State string `json:"state"`
	// QPs are the queue pairs in use.
	QPs      int     `json:"qps"`
	CPUCores float64 `json:"cpu_cores"`
}

type queueResult struct {
	QPs      int    `json:"qps"`
	MapBytes uint64 `json:"map_bytes"`
	// Tracked queues are followed; Untracked ones found no room, and are counted.
	Tracked   int    `json:"tracked"`
	Untracked uint64 `json:"untracked"`
}

// median returns the middle of the values, 0 of none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// spread returns the distance between the quartiles as a share of the median.
func spread(values []float64) float64 {
	middle := median(values)
	if middle == 0 {
		return 0
	}
	return (quantile(values, 0.75) - quantile(values, 0.25)) / middle
}

// quantile interpolates between the two nearest values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}

// sortPrograms puts the programs that cost most in total first.
func sortPrograms(programs []programResult) []programResult {
	total := func(p programResult) float64 { return p.NsPerRun * float64(p.RunCount) }
	slices.SortFunc(programs, func(a, b programResult) int {
		return cmp.Or(cmp.Compare(total(b), total(a)), cmp.Compare(a.Name, b.Name))
	})
	return programs
}
