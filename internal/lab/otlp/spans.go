package otlp

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Span is one exported work request.
type Span struct {
	Name       string
	Service    string
	Start, End time.Time
	Attributes map[string]string
	// Failed says that its status is Error.
	Failed bool
}

// Duration is the length of the span.
func (s Span) Duration() time.Duration { return s.End.Sub(s.Start) }

// Spans returns the spans exported since the last call.
func (t *Tail) Spans() ([]Span, error) {
	var spans []Span
	err := t.eachLine(func(line []byte) error {
		t, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			return err
		}
		for _, rs := range t.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					spans = append(spans, Span{
						Name: s.Name(), Service: service.AsString(),
						Start: s.StartTimestamp().AsTime(), End: s.EndTimestamp().AsTime(),
						Attributes: stringMap(s.Attributes()), Failed: s.Status().Code() == ptrace.StatusCodeError,
					})
				}
			}
		}
		return nil
	})
	return spans, err
}
