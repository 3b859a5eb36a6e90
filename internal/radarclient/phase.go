package radarclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// checkPhase tells a view from other objects, which decode to one in which nothing is wrong.
func checkPhase(phase radar.Phase) error {
	switch phase {
	case radar.Absent, radar.Starting, radar.Running, radar.Impaired, radar.Failed:
		return nil
	case "":
		return errors.New("it does not say whether anything is traced")
	default:
		return fmt.Errorf("it says that tracing is %q, which this version of rdmaradar does not know", phase)
	}
}

// tracingOf reads a view as far as its member tracing.
func tracingOf(from io.Reader) (radar.Tracing, error) {
	var tracing radar.Tracing
	decoder := json.NewDecoder(from)
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return tracing, errors.Join(err, errors.New("it is no object"))
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return tracing, err
		}
		if name == "tracing" {
			if err := decoder.Decode(&tracing); err != nil {
				return tracing, err
			}
			break
		}
		var other json.RawMessage
		if err := decoder.Decode(&other); err != nil {
			return tracing, err
		}
	}
	return tracing, checkPhase(tracing.Phase)
}
