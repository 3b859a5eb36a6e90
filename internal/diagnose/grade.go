package diagnose

import "fmt"

// Which part of the excess a mechanism has to account for.
const (
	most  = 0.8 // to be the cause
	half  = 0.5 // to be the cause, when without it nothing would have been slow
	aPart = 0.2 // to be mentioned
)

// grade is how sure a mechanism that was measured is the cause. It is certain when
// it accounts for most of the excess and, but for it, most of the requests would
// not have been slow: else something else was slow as well, and may have brought
// it about that the mechanism could touch the request at all.
func (l lateness) grade() Confidence {
	spared := l.Requests > 0 && float64(l.Spared) >= most*float64(l.Requests)
	switch explains := l.Explains(); {
	case explains >= most && spared && !l.Inferred:
		return Certain
	case explains >= most, explains >= half && spared:
		return Likely
	case explains >= aPart:
		return Possible
	default:
		return None
	}
}

// ofPart is how sure a cause is of a burst that certainly is that of a part of it: what
// else was slow may have been for another reason.
func ofPart(share float64) Confidence {
	switch {
	case share >= most:
		return Certain
	case share >= half:
		return Likely
	default:
		return Possible
	}
}

// opinion is a judgement under way.
type opinion struct{ Judgement }

// gradedBy begins with what was measured.
func gradedBy(l lateness) *opinion {
	return &opinion{Judgement{Confidence: l.grade(), Explains: l.Explains()}}
}

// supports notes evidence for it.
func (o *opinion) supports(name, format string, args ...any) {
	o.For = append(o.For, Evidence{Name: name, Text: fmt.Sprintf(format, args...)})
}

// opposes notes evidence against it, with which it is at most that sure.
func (o *opinion) opposes(limit Confidence, name, format string, args ...any) {
	o.Against = append(o.Against, Evidence{Name: name, Text: fmt.Sprintf(format, args...)})
	o.limit(limit)
}

// misses notes what is not known, without which it is at most that sure.
func (o *opinion) misses(limit Confidence, what string) {
	o.Missing = append(o.Missing, what)
	o.limit(limit)
}

func (o *opinion) limit(limit Confidence) { o.Confidence = min(o.Confidence, limit) }

// lacking is the judgement when what is needed most is not known.
func lacking(what ...string) Judgement { return Judgement{Missing: what} }

// What would tell, and is often not known.
const (
	missingElsewhere  = "what the peer and the switches between saw in the same seconds"
	missingScheduling = "what the kernel did with the polling thread meanwhile"
	missingLook       = "when the thread last polled in vain: between the moments at which polls are watched, that is known only of threads that were off their CPU"
	missingInterrupts = "what interrupts took from the polling thread: they are watched only once something is slow"
	missingThrottling = "whether the CPU quota of the thread's cgroup ran out"
	missingSteal      = "whether a hypervisor took the CPU away"
	missingNeighbours = "what the other queue pairs of the device did"
	missingPauses     = "the pause counters of the port (ethtool -S)"
	missingCredits    = "port_xmit_wait and port_xmit_data of the port"
	missingOrder      = "whether the last receive was delivered before or after the last post"
	missingThreads    = "which threads take the completions of the process's other queue pairs"
	missingState      = "what the polling thread does"
	missingSleep      = "whether the thread slept for a time of its own choice or until it was told of the completion"
)
