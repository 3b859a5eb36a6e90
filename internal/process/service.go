package process

import (
	"net/url"
	"strings"
)

// serviceOf returns service name and namespace as the OpenTelemetry SDKs take
// them from the environment: OTEL_SERVICE_NAME goes before service.name of
// OTEL_RESOURCE_ATTRIBUTES.
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
func serviceOf(environ map[string]string) (name, namespace string) {
	attributes := parseResourceAttributes(environ[keyResourceAttributes])
	name = clean(environ[keyServiceName])
	if name == "" {
		name = clean(attributes["service.name"])
	}
	return name, clean(attributes["service.namespace"])
}

// parseResourceAttributes returns service.name and service.namespace of a list
// of key=value pairs, percent-encoded and separated by commas; every other
// attribute is dropped. As the resource SDK specification asks, one malformed
// pair makes the whole list void.
func parseResourceAttributes(list string) map[string]string {
	kept := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		key, keyErr := url.PathUnescape(strings.TrimSpace(key))
		value, valueErr := url.PathUnescape(strings.TrimSpace(value))
		if !found || key == "" || keyErr != nil || valueErr != nil {
			return nil
		}
		if key == "service.name" || key == "service.namespace" {
			kept[key] = value
		}
	}
	return kept
}
