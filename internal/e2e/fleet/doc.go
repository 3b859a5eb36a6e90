// Package fleet simulates one: many agents send what a recorded node exports through
// one gateway to Prometheus, and what that takes is held against docs/cost.md. It has
// no code of its own; `make backends` runs it.
package fleet
