package otlp

import (
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
)

// Record is one log record.
type Record struct {
	Event      string
	Service    string
	Time       time.Time
	Attributes map[string]string
}

// Records returns the log records exported since the last call.
func (t *Tail) Records() ([]Record, error) {
	var records []Record
	err := t.eachLine(func(line []byte) error {
		l, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		if err != nil {
			return err
		}
		for _, rl := range l.ResourceLogs().All() {
			service, _ := rl.Resource().Attributes().Get("service.name")
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					records = append(records, Record{
						Event: r.EventName(), Service: service.AsString(),
						Time: r.Timestamp().AsTime(), Attributes: stringMap(r.Attributes()),
					})
				}
			}
		}
		return nil
	})
	return records, err
}
