// Package tracer loads the BPF programs, attaches them to the functions that
// package provider finds, and turns what they record into values of package
// verbs. It knows no collector.
//
// Data flows one way. Probes feed maps and two ring buffers; control events
// (a process mapped a new file, opened a device, ended) lead to more probes or
// to clean-up; slow completions leave through a bounded channel that never
// holds up the reader; everything else is read from the maps when a snapshot
// is asked for.
package tracer
