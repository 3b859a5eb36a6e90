package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// causeUnknown is the cause of what nobody can tell the cause of.
const causeUnknown = "unknown"

// recently is how long ago what is slow is still worth a line.
const recently = time.Minute

// severity is how bad a headline is.
type severity int

const (
	plain severity = iota
	good
	warn
	bad
)

// said is one line of a headline.
type said struct {
	severity severity
	text     string
}

// summary is the first line: where, when and how much.
func summary(v *radar.View, zone *time.Location) string {
	parts := []string{"rdmaradar"}
	if v.Node.Host != "" {
		parts = append(parts, v.Node.Host)
	}
	parts = append(parts, time.UnixMilli(v.At).In(zone).Format(time.TimeOnly), plural(v.Now.Queues, "queue"))
	if v.Now.Untimed > 0 {
		parts[len(parts)-1] += fmt.Sprintf(", %d not timed", v.Now.Untimed)
	}
	return strings.Join(append(parts,
		count(v.Now.Completions)+"/s", bits(v.Now.Bytes), "p50 "+duration(v.Now.P50), "p99 "+duration(v.Now.P99),
		fmt.Sprintf("collector %.3f cores", v.Cost.Cores)), "  ")
}

// headline is what to read first: is something slow, and if nothing can be seen, why
// not.
func (s *scope) headline(zone *time.Location) []said {
	v := s.view
	switch v.Tracing.Phase {
	case radar.Absent:
		return []said{{bad, "No rdma receiver runs in this collector: name the receiver rdma in one of its pipelines."}}
	case radar.Starting:
		return []said{{warn, "Tracing is starting: the programs are being loaded and attached, which takes some seconds."}}
	case radar.Failed:
		return []said{{bad, "Nothing is traced on this node: " + v.Tracing.Reason}}
	}
	var lines []said
	if v.Tracing.Phase == radar.Impaired {
		lines = append(lines, said{warn, "Not everything can be seen: " + v.Tracing.Reason})
	}
	open := 0
	for i := range s.incidents {
		if s.incidents[i].Open {
			open++
			lines = append(lines, said{bad, sentence(&s.incidents[i], zone)})
		}
	}
	if open > 0 {
		return lines
	}
	return append(lines, s.quiet())
}

// quiet is for where there is no open incident.
func (s *scope) quiet() said {
	v, slow := s.view, 0
	for i := range s.rows {
		if last := s.rows[i].Last; last != 0 && v.At-last < recently.Milliseconds() {
			slow++
		}
	}
	switch {
	case len(s.rows) == 0 && v.Queues.Len() > 0:
		return said{plain, fmt.Sprintf("No queue has every word of %q.", s.filter)}
	case slow > 0:
		return said{warn, "Slow now and then on " + plural(slow, "queue") + ", too little for an incident."}
	case v.Now.Queues > 0:
		return said{good, "Nothing is slow."}
	case v.Machine.Read && len(v.Machine.Devices) == 0:
		return said{plain, "This node has no RDMA device: /sys/class/infiniband lists none."}
	default:
		return said{plain, "No RDMA queue is in use. Queues appear as soon as a process, or a consumer in the kernel, makes one."}
	}
}

// sentence says where, how slow, why, by what evidence, and what to do.
func sentence(i *radar.Incident, zone *time.Location) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s, since %s. Cause: %s", i.Subject, i.Happened, time.UnixMilli(i.First).In(zone).Format(time.TimeOnly), i.Title)
	if i.Confidence != "" && i.Confidence != "none" {
		fmt.Fprintf(&out, " (%s)", i.Confidence)
	}
	out.WriteString(".")
	if i.Cause == causeUnknown {
		list(&out, "What would tell", i.Missing)
	}
	list(&out, "For", i.For)
	list(&out, "Against", i.Against)
	if i.Remedy != "" {
		out.WriteString(" " + i.Remedy)
	}
	return out.String()
}

// list adds a sentence that lists something, none of nothing.
func list(out *strings.Builder, what string, items []string) {
	if len(items) > 0 {
		fmt.Fprintf(out, " %s: %s.", what, strings.Join(items, "; "))
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
