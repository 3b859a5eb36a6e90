package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// slowRequest is what the demonstration shows of one exported span.
type slowRequest struct {
	Start, End time.Time
	Process    string
	PID        int64
	Device     string
	QP         uint32
	Operation  string
	Bytes      int64
	Stages     map[string]time.Duration
	// Late is the time from its end to its row on the screen.
	Late time.Duration
}

// Duration is the time from post to completion.
func (r slowRequest) Duration() time.Duration { return r.End.Sub(r.Start) }

// The part of OTLP's JSON encoding that the demonstration reads. 64-bit whole
// numbers are strings there (opentelemetry-proto, "JSON Protobuf Encoding").
type tracesData struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes attributes }
		ScopeSpans []struct{ Spans []span }
	}
}

type span struct {
	Name              string
	StartTimeUnixNano wholeNumber
	EndTimeUnixNano   wholeNumber
	Attributes        attributes
}

type attributes []struct {
	Key   string
	Value struct {
		StringValue string
		IntValue    wholeNumber
		DoubleValue float64
	}
}

// wholeNumber accepts a JSON string and a JSON number, as OTLP asks of readers.
type wholeNumber int64

func (n *wholeNumber) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("not a whole number: %.40q", text)
	}
	*n = wholeNumber(value)
	return nil
}

// text is fit for a terminal, whoever wrote it.
func (a attributes) text(key string) string {
	const limit = 255
	for _, attribute := range a {
		if attribute.Key == key {
			return text.Clean(attribute.Value.StringValue, limit)
		}
	}
	return ""
}

func (a attributes) number(key string) int64 {
	for _, attribute := range a {
		if attribute.Key == key {
			return int64(attribute.Value.IntValue)
		}
	}
	return 0
}

// stages are the attributes rdma.wqe.stage.<name>, in seconds.
func (a attributes) stages() map[string]time.Duration {
	stages := make(map[string]time.Duration)
	for _, attribute := range a {
		name, found := strings.CutPrefix(attribute.Key, "rdma.wqe.stage.")
		if found {
			stages[name] = time.Duration(attribute.Value.DoubleValue * float64(time.Second))
		}
	}
	return stages
}

// parseTraces reads one line of the file exporter's traces.
func parseTraces(line []byte) ([]slowRequest, error) {
	var data tracesData
	if err := json.Unmarshal(line, &data); err != nil {
		return nil, fmt.Errorf("not OTLP in JSON: %w", err)
	}
	var requests []slowRequest
	for _, resource := range data.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				requests = append(requests, newSlowRequest(resource.Resource.Attributes, span))
			}
		}
	}
	return requests, nil
}

func newSlowRequest(resource attributes, span span) slowRequest {
	return slowRequest{
		Start:     time.Unix(0, int64(span.StartTimeUnixNano)),
		End:       time.Unix(0, int64(span.EndTimeUnixNano)),
		Process:   resource.text("service.name"),
		PID:       max(resource.number("process.pid"), span.Attributes.number("process.pid")),
		Device:    span.Attributes.text("rdma.device.name"),
		QP:        uint32(span.Attributes.number("rdma.qp.number")),
		Operation: span.Attributes.text("rdma.operation.name"),
		Bytes:     span.Attributes.number("rdma.wr.size"),
		Stages:    span.Attributes.stages(),
	}
}
