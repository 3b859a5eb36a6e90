package radar

import "github.com/rdmaradar/rdmaradar/internal/verbs"

// View is the state of a node at one moment, in the form in which it goes to the
// page and to commands. Moments are milliseconds since the Unix epoch, durations
// are nanoseconds. What is not known is left out, or is 0 where 0 means nothing.
type View struct {
	At      int64   `json:"at"`
	Node    Node    `json:"node"`
	Tracing Tracing `json:"tracing"`
	// Now is what the queues do at the moment.
	Now Pace `json:"now"`
	// Heatmap has the columns of late; a stream has all of them in its first view
	// and the newest in those that follow.
	Heatmap Heatmap    `json:"heatmap"`
	Queues  QueueTable `json:"queues"`
	// Incidents are the open ones, the newest first, then those that are over.
	Incidents []Incident `json:"incidents"`
	// Slowest are the slow work requests with the most excess time of the last
	// ten minutes, the worst first.
	Slowest []Request `json:"slowest"`
	// Lost is where the time of the last quarter of an hour went, the most first.
	Lost    []Lost  `json:"lost"`
	Machine Machine `json:"machine"`
	Probes  []Probe `json:"probes"`
	Books   Books   `json:"books"`
	Cost    Cost    `json:"cost"`
}

// Node says which machine it is.
type Node struct {
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
}

// Phase is how far tracing has come.
type Phase string

// The phases.
const (
	// Absent: there is no receiver.
	Absent Phase = "absent"
	// Starting: the probes are being attached.
	Starting Phase = "starting"
	// Running: what there is to trace is traced.
	Running Phase = "running"
	// Impaired: it is, but for what Reason tells.
	Impaired Phase = "impaired"
	// Failed: nothing is traced, and Reason tells why.
	Failed Phase = "failed"
)

// Tracing says whether anything can be seen at all.
type Tracing struct {
	Phase Phase `json:"phase"`
	// Reason says what does not work and what to do about it.
	Reason string `json:"reason,omitempty"`
}

// Pace is what all queues together did between the last two looks at them.
type Pace struct {
	// Queues counts the queue pairs, Untimed those of them whose requests are
	// counted and not timed.
	Queues  int `json:"queues"`
	Untimed int `json:"untimed"`
	// Completions and Bytes are per second. Slow counts completions.
	Completions float64 `json:"completions"`
	Bytes       float64 `json:"bytes"`
	Slow        uint64  `json:"slow"`
	// P50 and P99 are over the last one to two minutes, upper edges of buckets.
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

// Heatmap counts completions by duration, over time.
type Heatmap struct {
	// Edges are the upper edges of the buckets.
	Edges []int64 `json:"edges,omitempty"`
	// Columns are in the order of time.
	Columns []Column `json:"columns"`
}

// Column is what completed between two looks at the queues. It has nothing of
// queues that came and went in between.
type Column struct {
	// At is the end of it, Span how long it lasted.
	At   int64 `json:"at"`
	Span int64 `json:"span"`
	// Counts are those of the buckets from First on; the others are 0.
	First  int      `json:"first"`
	Counts []uint64 `json:"counts"`
	// Slow counts those that exceeded their limit, which depends on how busy the port
	// was and on what is usual: no duration alone is slow.
	Slow uint64 `json:"slow,omitempty"`
}

// QueueTable has a row for each queue pair. It is stored by columns: a node may
// have thousands of them, and a page gets all of them each second.
type QueueTable struct {
	// Over is for how long Completions, Slow, P50, P99, P999 and Worst count.
	Over int64 `json:"over"`
	// Processes, Devices and Peers are what Process, Device and Peer index.
	Processes []Process `json:"processes"`
	Devices   []string  `json:"devices"`
	Peers     []string  `json:"peers"`

	Process []int `json:"process"`
	Device  []int `json:"device"`
	// Peer is -1 where it is not known.
	Peer     []int    `json:"peer"`
	QP       []uint32 `json:"qp"`
	RemoteQP []uint32 `json:"remote_qp"`
	Type     []string `json:"type"`
	State    []string `json:"state"`
	// Outstanding is how many sends are on the queue, Peak the most since metrics
	// were last collected, Limit how many fit, 0 where it is not known. Of a queue that
	// is not synced the first two are not certain. Oldest is the age of the oldest.
	Outstanding []uint32 `json:"outstanding"`
	Peak        []uint32 `json:"peak"`
	Limit       []uint32 `json:"limit"`
	// Node is the NUMA node on which the thread runs that polls for the queue, -1 where
	// that is not known.
	Node   []int   `json:"node"`
	Oldest []int64 `json:"oldest"`
	// Rate is completions, Throughput bytes a second, between the last two looks.
	Rate       []float64 `json:"rate"`
	Throughput []float64 `json:"throughput"`
	// Completions counts the timed ones. The quantiles are upper edges of buckets,
	// at most √2 too high. Worst is exact where the request was reported.
	Completions []uint64 `json:"completions"`
	P50         []int64  `json:"p50"`
	P99         []int64  `json:"p99"`
	P999        []int64  `json:"p999"`
	Worst       []int64  `json:"worst"`
	Slow        []uint64 `json:"slow"`
	// Troubles are queues that were slow of late, by their row.
	Troubles map[int]Trouble `json:"troubles"`
}

// Len is the number of rows.
func (t *QueueTable) Len() int { return len(t.QP) }

// Trouble is what was slow on a queue, from the first time on after which it never
// was well for as long as a minute.
type Trouble struct {
	Since int64 `json:"since"`
	Last  int64 `json:"last"`
	// Slow counts completions, Lost is the time that they lost, Worst the longest.
	Slow  uint64 `json:"slow"`
	Lost  int64  `json:"lost"`
	Worst int64  `json:"worst"`
	// Stuck counts sends that do not complete.
	Stuck uint64 `json:"stuck,omitempty"`
	// Cause is the name of that of the last time.
	Cause string `json:"cause"`
}

// Process is who owns a queue. Texts are foreign: the process chose them.
type Process struct {
	PID  uint32 `json:"pid,omitempty"`
	Name string `json:"name"`
	// Kernel is true of a consumer in the kernel, which has no PID.
	Kernel  bool   `json:"kernel,omitempty"`
	Service string `json:"service,omitempty"`
	Rank    *int   `json:"rank,omitempty"`
	Job     string `json:"job,omitempty"`
}

// Incident is what is or was slow for one cause.
type Incident struct {
	ID   string `json:"id"`
	Open bool   `json:"open"`
	// Subject says where, Happened what was seen, both in words.
	Subject  string `json:"subject"`
	Happened string `json:"happened"`
	// Cause is its name, Title what people call it.
	Cause      string   `json:"cause"`
	Title      string   `json:"title"`
	Confidence string   `json:"confidence,omitempty"`
	For        []string `json:"for,omitempty"`
	Against    []string `json:"against,omitempty"`
	Missing    []string `json:"missing,omitempty"`
	Others     []string `json:"others,omitempty"`
	Remedy     string   `json:"remedy,omitempty"`
	Device     string   `json:"device,omitempty"`
	First      int64    `json:"first"`
	Last       int64    `json:"last"`
	Slow       uint64   `json:"slow"`
	Lost       int64    `json:"lost"`
	// Queues are the first of those that were hit, More counts the others.
	Queues []QueueName `json:"queues,omitempty"`
	More   int         `json:"more,omitempty"`
}

// QueueName names a queue pair as people do.
type QueueName struct {
	PID    uint32 `json:"pid,omitempty"`
	Device string `json:"device,omitempty"`
	QP     uint32 `json:"qp"`
}

// Request is one slow work request.
type Request struct {
	At        int64     `json:"at"`
	Queue     QueueName `json:"queue"`
	Process   Process   `json:"process"`
	Operation string    `json:"operation"`
	Bytes     uint64    `json:"bytes"`
	Duration  int64     `json:"duration"`
	// Excess is the part of it that the port's work does not explain.
	Excess int64   `json:"excess"`
	Stages []Stage `json:"stages"`
	Cause  string  `json:"cause"`
	// Status is that of a completion that failed.
	Status string `json:"status,omitempty"`
	// Locality is "remote" where the poller ran on another NUMA node than the
	// device's, else "local"; "" when it is not known.
	Locality string `json:"locality,omitempty"`
}

// Stage is one part of a duration.
type Stage struct {
	Name string `json:"name"`
	Time int64  `json:"time"`
}

// Lost is what one cause took on one device.
type Lost struct {
	Cause  string  `json:"cause"`
	Title  string  `json:"title"`
	Device string  `json:"device"`
	Slow   uint64  `json:"slow"`
	Time   int64   `json:"time"`
	Stages []Stage `json:"stages"`
}

// Probe is how the functions of one library are observed.
type Probe struct {
	Provider  string   `json:"provider"`
	Library   string   `json:"library"`
	Functions []string `json:"functions"`
	Mode      string   `json:"mode"`
	Link      string   `json:"link"`
	Used      bool     `json:"used"`
	// Observed is the part of the last interval for which it was, from 0 to 1.
	Observed float64 `json:"observed"`
	// Paid is the part of it that the probes of the library took of its busiest thread,
	// from 0 to 1; 0 in the kernel, where that is not counted.
	Paid float64 `json:"paid"`
}

// Books are the accounts of the tracer since it began, as of the last collection.
type Books struct {
	Posted      uint64 `json:"posted"`
	Delivered   uint64 `json:"delivered"`
	Retired     uint64 `json:"retired"`
	Undone      uint64 `json:"undone"`
	Outstanding uint64 `json:"outstanding"`
	// Discarded, Lost and Losses are by reason; those that are 0 are left out.
	Discarded map[string]uint64 `json:"discarded"`
	Lost      map[string]uint64 `json:"lost"`
	Losses    map[string]uint64 `json:"losses"`
	// Seen counts completions; the others are what became of them.
	Seen         uint64 `json:"seen"`
	Matched      uint64 `json:"matched"`
	Received     uint64 `json:"received"`
	Unsynced     uint64 `json:"unsynced"`
	BeforeAttach uint64 `json:"before_attach"`
	Duplicate    uint64 `json:"duplicate"`
	Ambiguous    uint64 `json:"ambiguous"`
	Unmatched    uint64 `json:"unmatched"`
	// UntrackedQueues are over the bound.
	UntrackedQueues uint64 `json:"untracked_queues"`
}

// Cost is what observing takes.
type Cost struct {
	// Cores is the CPU time of the collector, all of it, per second.
	Cores float64 `json:"cores"`
}

func booksOf(s *verbs.Snapshot) Books {
	return Books{
		Posted: s.WQEs.Posted, Delivered: s.WQEs.Delivered, Retired: s.WQEs.Retired,
		Undone: s.WQEs.Undone, Outstanding: s.WQEs.Outstanding,
		Discarded: counted(s.WQEs.Discarded), Lost: counted(s.WQEs.Lost), Losses: counted(s.Losses),
		Seen: s.Completions.Seen, Matched: s.Completions.Matched, Received: s.Completions.Received,
		Unsynced: s.Completions.Unsynced, BeforeAttach: s.Completions.BeforeAttach,
		Duplicate: s.Completions.Duplicate, Ambiguous: s.Completions.Ambiguous, Unmatched: s.Completions.Unmatched,
		UntrackedQueues: s.UntrackedQueues,
	}
}

// counted are the counts that are not 0.
func counted(all map[string]uint64) map[string]uint64 {
	some := map[string]uint64{}
	for reason, n := range all {
		if n != 0 {
			some[reason] = n
		}
	}
	return some
}

func probesOf(s *verbs.Snapshot) []Probe {
	probes := make([]Probe, 0, len(s.Probes))
	for _, p := range s.Probes {
		probes = append(probes, Probe{
			Provider: p.Provider, Library: p.Library, Functions: p.Functions,
			Mode: p.Mode, Link: p.Link, Used: p.Used, Observed: p.Observed, Paid: p.Paid,
		})
	}
	return probes
}
