// Package top makes a table of the queues of a node out of what a collector's radar
// shows, once or live in a terminal.
package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// Row is one queue pair. Moments are milliseconds since the Unix epoch. What is not
// known is left out.
type Row struct {
	PID     uint32 `json:"pid,omitempty"`
	Process string `json:"process"`
	// Kernel is true of a consumer in the kernel.
	Kernel   bool   `json:"kernel,omitempty"`
	Service  string `json:"service,omitempty"`
	Job      string `json:"job,omitempty"`
	Rank     *int   `json:"rank,omitempty"`
	Device   string `json:"device,omitempty"`
	QP       uint32 `json:"qp"`
	RemoteQP uint32 `json:"remote_qp,omitempty"`
	Peer     string `json:"peer,omitempty"`
	Type     string `json:"type"`
	// State is synced, or why requests are counted and not timed.
	State string `json:"state"`
	// Depth is how many sends are on the queue, Peak the most of late, Limit how many fit.
	Depth    uint32 `json:"depth"`
	Peak     uint32 `json:"peak"`
	Limit    uint32 `json:"limit,omitempty"`
	OldestNs int64  `json:"oldest_ns,omitempty"`
	// Rate is timed completions, Throughput bytes a second.
	Rate        float64 `json:"rate"`
	Throughput  float64 `json:"throughput"`
	Completions uint64  `json:"completions"`
	P50Ns       int64   `json:"p50_ns,omitempty"`
	P99Ns       int64   `json:"p99_ns,omitempty"`
	P999Ns      int64   `json:"p999_ns,omitempty"`
	WorstNs     int64   `json:"worst_ns,omitempty"`
	Slow        uint64  `json:"slow"`
	// LostNs is what slow requests lost in the present trouble, from Since to Last.
	LostNs int64  `json:"lost_ns,omitempty"`
	Since  int64  `json:"since,omitempty"`
	Last   int64  `json:"last,omitempty"`
	Stuck  uint64 `json:"stuck,omitempty"`
	// Cause is the name of that of the last slow requests, Why what people call it.
	Cause string `json:"cause,omitempty"`
	Why   string `json:"why,omitempty"`
	// Crossing says that the queue is polled on another NUMA node than the device's.
	Crossing bool `json:"crossing,omitempty"`
}

// Rows returns a row of each queue of a view. Where a view contradicts itself, as that
// of another version may, the value is left out.
func Rows(v *radar.View) []Row {
	t := &v.Queues
	titles, nodes := titlesOf(v), nodesOf(v)
	rows := make([]Row, 0, t.Len())
	for i, qp := range t.QP {
		process := at(t.Processes, at(t.Process, i))
		row := Row{
			PID: process.PID, Process: process.Name, Kernel: process.Kernel, Service: process.Service, Job: process.Job, Rank: process.Rank,
			Device: at(t.Devices, at(t.Device, i)), QP: qp, RemoteQP: at(t.RemoteQP, i),
			Type: at(t.Type, i), State: at(t.State, i),
			Depth: at(t.Outstanding, i), Peak: at(t.Peak, i), Limit: at(t.Limit, i), OldestNs: at(t.Oldest, i),
			Rate: at(t.Rate, i), Throughput: at(t.Throughput, i), Completions: at(t.Completions, i),
			P50Ns: at(t.P50, i), P99Ns: at(t.P99, i), P999Ns: at(t.P999, i), WorstNs: at(t.Worst, i), Slow: at(t.Slow, i),
			Peer: at(t.Peers, at(t.Peer, i)),
		}
		if trouble, ok := t.Troubles[i]; ok {
			row.LostNs, row.Since, row.Last, row.Stuck, row.Cause = trouble.Lost, trouble.Since, trouble.Last, trouble.Stuck, trouble.Cause
			row.Why = titles[trouble.Cause]
			if row.Why == "" {
				row.Why = trouble.Cause
			}
		}
		if node, ok := nodes[row.Device]; ok && i < len(t.Node) {
			row.Crossing = t.Node[i] >= 0 && t.Node[i] != node
		}
		rows = append(rows, row)
	}
	return rows
}

// at is the value at an index, none where there is no such index.
func at[T any](values []T, i int) (none T) {
	if i < 0 || i >= len(values) {
		return none
	}
	return values[i]
}

// titlesOf are what people call the causes of a view.
func titlesOf(v *radar.View) map[string]string {
	titles := map[string]string{}
	for _, lost := range v.Lost {
		titles[lost.Cause] = lost.Title
	}
	for _, incident := range v.Incidents {
		titles[incident.Cause] = incident.Title
	}
	return titles
}

// nodesOf are the NUMA nodes of devices.
func nodesOf(v *radar.View) map[string]int {
	nodes := map[string]int{}
	for _, device := range v.Machine.Devices {
		if device.Node != nil {
			nodes[device.Name] = *device.Node
		}
	}
	return nodes
}

// Filter keeps the rows that have every word of a text somewhere, such as "mlx5_3
// rank:7" or "0x18f2", as the radar page does.
func Filter(rows []Row, text string) []Row {
	words := wordsOf(text)
	if len(words) == 0 {
		return rows
	}
	kept := []Row{}
	for i := range rows {
		if hasAll(rows[i].searched(), words) {
			kept = append(kept, rows[i])
		}
	}
	return kept
}

// wordsOf are those of a filter.
func wordsOf(filter string) []string { return strings.Fields(strings.ToLower(filter)) }

func hasAll(text string, words []string) bool {
	lines := "\n" + text + "\n"
	for _, word := range words {
		if isWhole(word) {
			word = "\n" + word + "\n"
		}
		if !strings.Contains(lines, word) {
			return false
		}
	}
	return true
}

// isWhole says whether a word has to be all of a line: "rank:7" does not mean the ranks
// 70 to 79. Other words with colons are addresses.
func isWhole(word string) bool {
	key, value, _ := strings.Cut(word, ":")
	return value != "" && slices.Contains([]string{"pid", "rank", "job", "device"}, key)
}

// searched is what a filter looks into, in lines.
func (r *Row) searched() string {
	parts := []string{
		r.Process, r.Service, r.Peer, fmt.Sprintf("0x%x", r.QP), fmt.Sprint(r.QP), fmt.Sprintf("0x%x", r.RemoteQP), r.Type, r.State, r.Cause, r.Why,
	}
	if r.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid:%d", r.PID))
	}
	if r.Rank != nil {
		parts = append(parts, fmt.Sprintf("rank:%d", *r.Rank))
	}
	if r.Job != "" {
		parts = append(parts, "job:"+r.Job)
	}
	if r.Device != "" {
		parts = append(parts, "device:"+r.Device)
	}
	if r.Crossing {
		parts = append(parts, "numa crossing")
	}
	return strings.ToLower(strings.Join(parts, "\n"))
}
