/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/libraries.h"
#include "maps/threads.h"

/* What being observed costs the traced threads. User space holds it under a
 * bound, by detaching: see internal/tracer/governor.go. */

enum hit {
	HIT_ENTRY,
	HIT_RETURN,
	HITS,
};

/* What a hit costs with an empty poll's program, ns, measured by user space at
 * its start. */
volatile __u64 hit_cost_ns[HITS] = {};

/* Raised by user space with every look at the costs. */
volatile __u32 cost_tick = 0;

/* How many hits of a thread pass between two looks at whether it is the busiest
 * one, and of how many programs that do more than an empty poll's one is timed.
 * The second is odd, so that programs that alternate are timed alike. */
#define COST_HITS 16
#define COST_TIMED 15

/* Charges a hit to the thread. */
static __always_inline void charge_hit(struct thread *thread, struct library *library, enum hit hit)
{
	if (thread->cost_tick != cost_tick) {
		thread->cost_tick = cost_tick;
		thread->cost_ns = 0;
	}
	thread->cost_ns += hit_cost_ns[hit];
	/* Without an atomic: what a race loses, the next look puts right. */
	if (++thread->hits % COST_HITS == 0 && thread->cost_ns > library->busiest_ns)
		library->busiest_ns = thread->cost_ns;
}

/* Charges what a program has done since then, where that is more than an empty
 * poll's work. */
static __always_inline void charge_work(struct thread *thread, __u64 began_ns)
{
	if (++thread->works % COST_TIMED == 0)
		thread->cost_ns += COST_TIMED * (bpf_ktime_get_ns() - began_ns);
}
