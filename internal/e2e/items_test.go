//go:build backends

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// itemsOf are the items of some requests, by the key of the signal, such as
// "resourceSpans", each with what it is of: spans, log records, points of metrics. They
// are the same however an exporter cut requests up and put them together.
func itemsOf(t *testing.T, requests []string) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{"resourceSpans": {}, "resourceLogs": {}, "resourceMetrics": {}}
	// A request that was refused is in a file several times.
	for _, request := range slices.Compact(slices.Sorted(slices.Values(requests))) {
		var signals map[string][]map[string]any
		require.NoError(t, json.Unmarshal([]byte(request), &signals))
		for signal, resources := range signals {
			require.Contains(t, all, signal)
			addItems(t, all[signal], signal, resources)
		}
	}
	return all
}

func addItems(t *testing.T, to map[string]bool, signal string, resources []map[string]any) {
	t.Helper()
	scopes, items := strings.Replace(signal, "resource", "scope", 1), map[string]string{
		"resourceSpans": "spans", "resourceLogs": "logRecords", "resourceMetrics": "metrics",
	}[signal]
	add := func(parts ...any) {
		text, err := json.Marshal(parts)
		require.NoError(t, err)
		to[string(text)] = true
	}
	for _, resource := range resources {
		for _, scope := range listOf(resource[scopes]) {
			for _, item := range listOf(scope[items]) {
				if signal != "resourceMetrics" {
					add(resource["resource"], item)
					continue
				}
				for _, point := range pointsOf(item) {
					add(resource["resource"], item["name"], point)
				}
			}
		}
	}
}

func pointsOf(metric map[string]any) []map[string]any {
	for _, value := range metric {
		if kind, is := value.(map[string]any); is {
			return listOf(kind["dataPoints"])
		}
	}
	return nil
}

func listOf(value any) []map[string]any {
	var all []map[string]any
	list, _ := value.([]any)
	for _, one := range list {
		if is, ok := one.(map[string]any); ok {
			all = append(all, is)
		}
	}
	return all
}
