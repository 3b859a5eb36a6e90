// Package e2e holds the tests of the built collector with real backends: Jaeger and
// Prometheus, which build.sh builds, and with a receiver of OTLP of its own. It has
// no code of its own; `make backends` runs it.
package e2e
