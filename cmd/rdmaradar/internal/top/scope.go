package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// scope is what a filter leaves of a view: all of it without one. What is of the whole
// node, such as its rate and whether it is traced, stays.
type scope struct {
	view *radar.View
	// filter is as in Filter, rows are those that have it, and incidents those of their
	// queues.
	filter    string
	rows      []Row
	incidents []radar.Incident
	// others counts the open incidents that are left out.
	others int
}

func scopeOf(v *radar.View, filter string) *scope {
	s := &scope{view: v, filter: filter, rows: Filter(Rows(v), filter)}
	words := wordsOf(filter)
	if len(words) == 0 {
		s.incidents = v.Incidents
		return s
	}
	queues, devices := s.kept()
	s.incidents = []radar.Incident{}
	for i := range v.Incidents {
		incident := &v.Incidents[i]
		switch {
		case hits(incident, queues, devices) || names(incident, words):
			s.incidents = append(s.incidents, *incident)
		case incident.Open:
			s.others++
		}
	}
	return s
}

// kept are the queues of the rows, and their devices.
func (s *scope) kept() (queues map[radar.QueueName]bool, devices map[string]bool) {
	queues, devices = map[radar.QueueName]bool{}, map[string]bool{}
	for i := range s.rows {
		row := &s.rows[i]
		queues[radar.QueueName{PID: row.PID, Device: row.Device, QP: row.QP}] = true
		devices[row.Device] = true
	}
	return queues, devices
}

// hits says whether an incident is of one of these queues, or may be: not all are named
// where there are many, and none where it is of a device or of the node.
func hits(i *radar.Incident, queues map[radar.QueueName]bool, devices map[string]bool) bool {
	if slices.ContainsFunc(i.Queues, func(q radar.QueueName) bool { return queues[q] }) {
		return true
	}
	if len(i.Queues) > 0 && i.More == 0 {
		return false
	}
	return i.Device == "" || devices[i.Device]
}

// names says whether an incident has every word itself, as one of a queue that has gone.
func names(i *radar.Incident, words []string) bool {
	text := strings.Join([]string{i.Subject, "device:" + i.Device, i.Cause, i.Title}, "\n")
	if hasAll(strings.ToLower(text), words) {
		return true
	}
	return slices.ContainsFunc(i.Queues, func(q radar.QueueName) bool {
		return hasAll(strings.ToLower(fmt.Sprintf("%s\npid:%d\ndevice:%s\n0x%x\n%d", text, q.PID, q.Device, q.QP, q.QP)), words)
	})
}

// leftOut says what the filter keeps from being shown, "" for nothing.
func (s *scope) leftOut() string {
	switch s.others {
	case 0:
		return ""
	case 1:
		return "1 open incident of other queues is not shown."
	default:
		return fmt.Sprintf("%d open incidents of other queues are not shown.", s.others)
	}
}
