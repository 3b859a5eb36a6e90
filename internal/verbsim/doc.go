// Package verbsim runs the simulated RDMA provider and its workload, and reads
// the truth that the workload writes.
//
// The provider (provider/, C) is built on the real libibverbs and hands it a
// table of functions as every provider does; its queues complete after a
// programmed time. The workload (driver/, C) posts and polls as programs do
// and keeps books of every request by its own clock, so that what an observer
// saw can be reconciled with what happened. The Makefile builds both; this
// package builds nothing.
package verbsim
