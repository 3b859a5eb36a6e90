package rdmareceiver

import (
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The bodies of log records: a sentence for who reads them as text. All that is in
// it is in the attributes, too.

// slowSentence says what was slow, or failed.
func slowSentence(c *verbs.Completion) string {
	if c.Status != verbs.StatusSuccess {
		return fmt.Sprintf("%s failed after %s: %s", failedPhrase(&c.WorkRequest), rounded(c.Duration()), statusMessage(c))
	}
	what := requestPhrase(&c.WorkRequest)
	if !c.HasBusy {
		return fmt.Sprintf("%s took %s", what, rounded(c.Duration()))
	}
	return fmt.Sprintf("%s took %s, %s more than the port was busy", what, rounded(c.Duration()), rounded(c.Excess()))
}

// stuckSentence says what does not complete.
func stuckSentence(s *verbs.Stuck) string {
	return fmt.Sprintf("%s has not completed for %s, %d outstanding on queue pair %#x",
		requestPhrase(&s.WorkRequest), rounded(s.Age), s.Outstanding, s.Queue.QPNumber)
}

// asyncSentence says what happened to what.
func asyncSentence(a *verbs.AsyncEvent) string {
	what := a.Type.String()
	switch {
	case a.HasQP:
		what += fmt.Sprintf(" of queue pair %#x", a.QPNumber)
	case a.HasCQ:
		what += fmt.Sprintf(" of completion queue %d", a.CQNumber)
	case a.Port != 0:
		what += fmt.Sprintf(" of port %d", a.Port)
	}
	return what + onDevice(a.Device)
}

func requestPhrase(r *verbs.WorkRequest) string {
	return fmt.Sprintf("%s of %d bytes", r.Operation, r.Bytes) + onDevice(r.Device)
}

// failedPhrase leaves out a size of 0: a completion with an error tells none.
func failedPhrase(r *verbs.WorkRequest) string {
	if r.Bytes == 0 {
		return r.Operation.String() + onDevice(r.Device)
	}
	return requestPhrase(r)
}

func onDevice(name string) string {
	if name == "" {
		return ""
	}
	return " on " + name
}

// rounded keeps three to six digits of a duration, and whole seconds from 1,000 s on.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= 1000*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(time.Microsecond)
	default:
		return d
	}
}
