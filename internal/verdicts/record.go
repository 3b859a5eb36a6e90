package main

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
)

// record is a verdict as the collector exported it.
type record struct {
	device, cause, confidence, state string
	body                             string
	// worst is the longest that one of its requests took.
	worst time.Duration
	// began is when the first of its requests was posted, ended when the last one was
	// delivered, came when it was in the file.
	began, ended, came time.Time
}

const eventVerdict = "rdma.verdict"

// parseRecords returns the verdicts in one line of the file exporter.
func parseRecords(line []byte, came time.Time) ([]record, error) {
	var reader plog.JSONUnmarshaler
	logs, err := reader.UnmarshalLogs(line)
	if err != nil {
		return nil, fmt.Errorf("a line of logs: %w", err)
	}
	var all []record
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, r := range scope.LogRecords().All() {
				if r.EventName() != eventVerdict {
					continue
				}
				verdict, err := recordOf(r, came)
				if err != nil {
					return nil, err
				}
				all = append(all, verdict)
			}
		}
	}
	return all, nil
}

func recordOf(r plog.LogRecord, came time.Time) (record, error) {
	text := func(key string) string {
		v, ok := r.Attributes().Get(key)
		if !ok {
			return ""
		}
		return v.AsString()
	}
	began, err := time.Parse(time.RFC3339Nano, text("rdma.incident.first_time"))
	if err != nil {
		return record{}, fmt.Errorf("when the incident of a verdict began: %w", err)
	}
	ended, err := time.Parse(time.RFC3339Nano, text("rdma.incident.last_time"))
	if err != nil {
		return record{}, fmt.Errorf("when the incident of a verdict ended: %w", err)
	}
	var worst time.Duration
	if v, ok := r.Attributes().Get("rdma.incident.worst_duration"); ok {
		worst = time.Duration(v.Double() * 1e9)
	}
	return record{
		device: text("rdma.device.name"), cause: text("rdma.slow.cause"),
		confidence: text("rdma.verdict.confidence"), state: text("rdma.incident.state"),
		body: r.Body().AsString(), worst: worst,
		began: began, ended: ended, came: came,
	}, nil
}

// isConfident reports whether a wrong one would be a lie and not a guess.
func (r *record) isConfident() bool { return r.confidence == "certain" || r.confidence == "likely" }
