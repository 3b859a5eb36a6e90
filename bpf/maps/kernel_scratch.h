/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "threads.h"

/* How many programs may be at work on a CPU at one time: each is interrupted by
 * the next, or preempted. On a large machine CPUs share: not all are at work. */
#define SCRATCH_PER_CPU 4
#define SCRATCH_MOST 512

/* The scratch memory of one running program. */
struct scratch {
	__u32 taken;
	__u32 pad;
	struct thread thread;
};

/* Sized by user space: SCRATCH_PER_CPU for each processor, SCRATCH_MOST at most. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCRATCH_MOST);
	__type(key, __u32);
	__type(value, struct scratch);
} kernel_scratch SEC(".maps");
