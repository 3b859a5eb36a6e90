package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

const statusAddress = "http://127.0.0.1:13133/?verbose"

// statusArguments let a collector tell the status of its components.
var statusArguments = []string{
	"--feature-gates=extension.healthcheck.useComponentStatus",
	"--config", `yaml:extensions::health_check::use_v2: true`,
	"--config", `yaml:extensions::health_check::http: {endpoint: "127.0.0.1:13133", status: {enabled: true, path: /}, config: {enabled: false}}`,
	"--config", `yaml:extensions::health_check::component_health: {include_permanent_errors: true, include_recoverable_errors: true, recovery_duration: 0s}`,
	"--config", `yaml:service::extensions: [health_check]`,
}

// componentStatus is the status of one component, or of several, in the words of
// the health_check extension.
type componentStatus struct {
	Status     string                     `json:"status"`
	Error      string                     `json:"error"`
	Components map[string]componentStatus `json:"components"`
}

// readStatus asks the running collector for the status of the receiver.
func readStatus(ctx context.Context) (componentStatus, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, statusAddress, nil)
	if err != nil {
		return componentStatus{}, err
	}
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		return componentStatus{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var whole componentStatus
	if err := json.NewDecoder(response.Body).Decode(&whole); err != nil {
		return componentStatus{}, fmt.Errorf("the status of the collector: %w", err)
	}
	if status, ok := whole.find("receiver:rdma"); ok {
		return status, nil
	}
	return componentStatus{}, fmt.Errorf("the status of the collector has no receiver: %+v", whole)
}

func (s componentStatus) find(name string) (componentStatus, bool) {
	if found, ok := s.Components[name]; ok {
		return found, true
	}
	for _, part := range s.Components {
		if found, ok := part.find(name); ok {
			return found, true
		}
	}
	return componentStatus{}, false
}
