// Package rules holds the tests of config/prometheus: its rules are evaluated over a
// fleet that is made up, by Prometheus's own code, and what they say goes through
// Alertmanager's. It has no code of its own; `make backends` runs it.
package rules
