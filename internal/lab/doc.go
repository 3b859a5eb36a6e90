// Package lab boots stock Debian kernels in a QEMU virtual machine that carries
// real RDMA verbs over soft-RoCE (rxe), and runs the built collector against
// real clients in it.
//
// Data flows one way: a cache of kernels and one user-space image (Cache), a
// machine booted from them (Machine), a guest program that runs the tests and
// writes their results to a shared directory, and the report merged from them.
//
// The machine is emulated in software (TCG), so no hardware virtualisation is
// needed. It has one virtual CPU on purpose: with two, patching of kernel text
// (kprobes, ftrace, static keys) under multi-threaded TCG corrupts the guest
// now and then.
package lab
