// Package diagnose says why work requests were slow: from what was measured of
// them and what went on around them, to a verdict with its evidence.
//
// Everything in it is a pure function. A [Burst] goes in: the slow work requests of
// one queue pair in one window of time, and what is known of their surroundings.
// Each [Cause] judges it by itself, in a file of its own: what speaks for it, what
// speaks against it, and what it would have to know. [Judge] weighs the judgements
// and returns one [Verdict]. Where the evidence does not suffice, that is the
// cause unknown, with what would tell.
package diagnose
