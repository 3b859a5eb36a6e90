package tracer

import (
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// standIns are the threads that ran while another one wanted a CPU, each for how long.
type standIns map[uint32]standIn

type standIn struct {
	who   bpf.TrackerStandIn
	spent time.Duration
}

func (s *standIns) add(who *bpf.TrackerStandIn, spent time.Duration) {
	if spent <= 0 {
		return
	}
	if *s == nil {
		*s = standIns{}
	}
	(*s)[who.Tid] = standIn{*who, (*s)[who.Tid].spent + spent}
}

// addPresent adds those of an absence that lasts, in which until now the thread has
// wanted a CPU for so long: the turn that is not over, and in what is left of that time
// those that are. Which of these were in it is not known: each has as much as it can.
func (s *standIns) addPresent(of *bpf.TrackerSchedule, now uint64, wanted time.Duration) {
	present := within(of.CountedNs, now, now-uint64(wanted), now)
	if of.Last.Tid != 0 || of.Last.Comm[0] != 0 {
		s.add(&of.Last, present)
	}
	for i := range of.StandIns.Of {
		over := &of.StandIns.Of[i]
		s.add(over, min(time.Duration(over.Ns), wanted-present))
	}
}

// longest is who ran for the longest time, and whether that is a thread of the
// process self.
func (s standIns) longest(self uint32) (who verbs.Thread, isSelf bool) {
	var most standIn
	for _, one := range s {
		if one.spent > most.spent || one.spent == most.spent && one.who.Tid < most.who.Tid {
			most = one
		}
	}
	return verbs.Thread{TID: most.who.Tid, Name: commName(most.who.Comm[:])}, isProcess(most.who.Tgid, self)
}

// isProcess reports whether a thread is of a process that is known: the idle thread is
// of none.
func isProcess(tgid, process uint32) bool { return tgid != 0 && tgid == process }
