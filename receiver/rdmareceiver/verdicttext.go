package rdmareceiver

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/text"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The bounds of what is said of an incident, in bytes.
const (
	maxVerdictText = 4096
	maxClause      = 512
)

// maxSpoken is how many ranks or names the text has; all that are known are
// attributes.
const maxSpoken = 3

// verdictText says in a few sentences what is slow, why, and what to do.
func verdictText(r *incident.Record, title func(string) string) string {
	i := &r.Incident
	sentences := []string{subject(i) + ": " + happened(i) + "."}
	switch {
	case r.Unfinished:
		sentences[0] = "No longer watched. " + sentences[0]
	case r.State == incident.Closed:
		sentences[0] = "Over. " + sentences[0]
	}
	sentences = append(sentences, causeSentence(&i.Verdict, title), sourceSentence(i))
	if i.Verdict.Cause == causeUnknown {
		sentences = append(sentences, listSentence("What would tell", i.Verdict.Missing))
	}
	sentences = append(sentences,
		listSentence("For", textsOf(i.Verdict.For)), listSentence("Against", textsOf(i.Verdict.Against)),
		sentence(i.Verdict.Remedy))
	return strings.Join(nonEmpty(sentences), " ")
}

// subject names where it happens, of several queue pairs the worst:
// "QP 0x18f2 on mlx5_3 (rank 337)".
func subject(i *incident.Incident) string {
	var what string
	if n := len(i.Queues.Values) + i.Queues.More; n > 0 {
		what = plural("QP", n) + " " + spoken(i.WorstQueues, n-len(i.WorstQueues), func(q verbs.QueueID) string { return fmt.Sprintf("0x%x", q.QPNumber) })
	} else {
		what = orElse(spoken(i.Names.Values, i.Names.More, func(s string) string { return s }), "A process")
	}
	if i.Device != "" {
		what += " on " + i.Device
	}
	if who := whoOf(i); who != "" {
		what += " (" + who + ")"
	}
	return what
}

// whoOf names the ranks, and where there are none the processes.
func whoOf(i *incident.Incident) string {
	if n := len(i.Ranks.Values) + i.Ranks.More; n > 0 {
		return plural("rank", n) + " " + spoken(i.Ranks.Values, i.Ranks.More, strconv.Itoa) + unranked(i.Unranked)
	}
	pids := pidsOf(i.Processes.Values)
	named := len(i.Queues.Values) > 0
	switch {
	case len(pids) == 1 && i.Processes.More == 0 && named && len(i.Names.Values) == 1:
		return fmt.Sprintf("%s, pid %d", i.Names.Values[0], pids[0])
	case len(pids) == 1 && i.Processes.More == 0:
		return fmt.Sprintf("pid %d", pids[0])
	case named:
		return spoken(i.Names.Values, i.Names.More, func(s string) string { return s })
	default:
		return ""
	}
}

// unranked keeps those without a rank from being taken for one that is named.
func unranked(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and 1 process without a rank"
	default:
		return fmt.Sprintf(", and %d processes without a rank", n)
	}
}

// happened says what was seen: "380 µs instead of 1.9 µs, 212 times in 4 s".
func happened(i *incident.Incident) string {
	var clauses []string
	if i.Slow > 0 {
		clauses = append(clauses, slowClause(i))
	}
	switch {
	case i.Stuck > 0:
		clauses = append(clauses, fmt.Sprintf("%d %s not completed, the oldest for %s", i.Stuck, plural("send", int(i.Stuck)), text.Duration(i.Oldest)))
	case i.Oldest > 0:
		// They were counted in the incident of the cause that was seen first.
		clauses = append(clauses, "sends not completed, the oldest for "+text.Duration(i.Oldest))
	}
	if i.Idle > 0 {
		clauses = append(clauses, "nothing posted for "+text.Duration(i.Idle))
	}
	return strings.Join(clauses, "; ")
}

func slowClause(i *incident.Incident) string {
	clause := text.Duration(i.Worst)
	if i.Slow > 1 {
		clause = "up to " + clause
	}
	if i.Normal > 0 {
		clause += " instead of " + text.Duration(i.Normal)
	}
	if i.Slow == 1 {
		return clause + ", once"
	}
	return fmt.Sprintf("%s, %d times in %s", clause, i.Slow, text.Duration(time.Duration(i.Last-i.First)))
}

func causeSentence(v *diagnose.Verdict, title func(string) string) string {
	if v.Confidence == diagnose.None {
		return "Cause: " + title(v.Cause) + "."
	}
	return fmt.Sprintf("Cause: %s (%s).", title(v.Cause), v.Confidence)
}

// sourceSentence says which part of an incident the evidence is of, where that is one
// of several: its figures are not those of the whole.
func sourceSentence(i *incident.Incident) string {
	if i.Bursts < 2 || i.Clearest == 0 || len(i.Verdict.For)+len(i.Verdict.Against) == 0 {
		return ""
	}
	return fmt.Sprintf("Evidence of the clearest of %d bursts, up to %s.", i.Bursts, text.Duration(i.Clearest))
}

func listSentence(label string, clauses []string) string {
	if len(clauses) == 0 {
		return ""
	}
	return label + ": " + strings.Join(clauses, "; ") + "."
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(s[size:], ".") + "."
}

func textsOf(all []diagnose.Evidence) []string {
	var texts []string
	for _, e := range all {
		texts = append(texts, e.Text)
	}
	return texts
}

// spoken is "1, 2, 3 and 4 more".
func spoken[T any](values []T, more int, say func(T) string) string {
	said := make([]string, 0, maxSpoken)
	for _, v := range values[:min(len(values), maxSpoken)] {
		said = append(said, say(v))
	}
	if more += len(values) - len(said); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(said, ", "), more)
	}
	return strings.Join(said, ", ")
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func nonEmpty(all []string) []string {
	var kept []string
	for _, s := range all {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
