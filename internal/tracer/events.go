package tracer

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/text"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// elsewhereUnknown is ELSEWHERE_UNKNOWN of bpf/types.h.
const elsewhereUnknown = 0xffffffff

// decodeSlow turns a record of the ring buffer into a completion. The names of
// device and posting thread are not in it. self is the process of this collector.
func decodeSlow(raw []byte, self uint32) (stampedCompletion, error) {
	var event bpf.TrackerSlowEvent
	if err := decodeInto(&event, raw); err != nil {
		return stampedCompletion{}, err
	}
	c := verbs.Completion{
		WorkRequest: verbs.WorkRequest{
			Queue: verbs.QueueID{
				Process:  verbs.ProcessID{TGID: event.Tgid, Incarnation: event.Incarnation},
				Context:  event.Context,
				QPNumber: event.QpNum,
			},
			QPType:      verbs.QPType(event.QpType),
			RemoteQP:    event.RemoteQp,
			CQ:          event.Cq,
			Port:        event.Port,
			Operation:   verbs.Operation(event.Operation),
			WRID:        event.WrId,
			Bytes:       event.Bytes,
			LocalKey:    event.Lkey,
			Outstanding: event.Outstanding,
			Posted:      event.PostedNs,
			Poster:      verbs.Thread{TID: event.PostTid, CPU: event.PostCpu},
		},
		Status:      verbs.Status(event.Status),
		VendorError: event.VendorError,
		Requests:    event.Requests,
		Delivered:   event.DeliveredNs,
		Poller:      verbs.Thread{TID: event.PollTid, CPU: event.PollCpu, Name: commName(event.PollComm[:])},
		Known:       verbs.StageSet(event.KnownStages),
		Busy:        time.Duration(event.BusyNs),
		HasBusy:     event.HasBusy != 0,
		Threshold:   time.Duration(event.ThresholdNs),
		Span:        verbs.SpanContext{TraceID: event.TraceId, SpanID: event.SpanId},
	}
	if event.ElsewhereUs != elsewhereUnknown {
		c.Elsewhere, c.HasElsewhere = time.Duration(event.ElsewhereUs)*time.Microsecond, true
	}
	c.PollerScheduling, c.HasPollerScheduling = schedulingOf(&event.Poller, self)
	c.PosterScheduling, c.HasPosterScheduling = schedulingOf(&event.Poster, self)
	if event.PostTid == event.PollTid {
		c.PosterScheduling, c.HasPosterScheduling = c.PollerScheduling, c.HasPollerScheduling
	}
	for i := range c.Stages {
		c.Stages[i] = time.Duration(event.StageNs[i])
	}
	return stampedCompletion{c, event.Device, event.CqeStamp}, nil
}

// schedulingOf decodes what is known of a thread, if anything is.
func schedulingOf(s *bpf.TrackerScheduling, self uint32) (verbs.Scheduling, bool) {
	if s.Known == uint32(bpf.TrackerSchedulingKnownSCHEDULING_UNKNOWN) {
		return verbs.Scheduling{}, false
	}
	return verbs.Scheduling{
		Runnable:    time.Duration(s.RunnableNs),
		Asleep:      time.Duration(s.AsleepNs),
		Stopped:     time.Duration(s.HeldNs),
		Interrupted: time.Duration(s.InterruptedNs), InterruptsKnown: s.InterruptsKnown != 0,
		Longest:     time.Duration(s.LongestNs),
		Switches:    s.Switches,
		Migrations:  s.Migrations,
		Instead:     verbs.Thread{TID: s.InsteadTid, Name: commName(s.InsteadComm[:])},
		ByCollector: isProcess(s.InsteadTgid, self),
		Whole:       s.Known == uint32(bpf.TrackerSchedulingKnownSCHEDULING_WHOLE),
	}, true
}

func decodeControl(raw []byte) (bpf.TrackerControlEvent, error) {
	var event bpf.TrackerControlEvent
	err := decodeInto(&event, raw)
	return event, err
}

func decodeInto[T any](into *T, raw []byte) error {
	size := int(unsafe.Sizeof(*into))
	if len(raw) < size {
		return fmt.Errorf("a record of %d bytes, expected %d", len(raw), size)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(into)), size), raw)
	return nil
}

// nameLimit is longer than every comm and every name of a device, in bytes.
const nameLimit = 256

// commName reads a fixed-size, NUL-terminated name as C and the kernel write it.
// Processes choose such names.
func commName[T int8 | byte](raw []T) string {
	name := make([]byte, 0, len(raw))
	for _, c := range raw {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	return text.Clean(string(name), nameLimit)
}
