/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "watched.h"

/* Keeps when interrupts and softirqs took the CPU from a watched thread for long:
 * it is the current thread meanwhile. The programs stand only while something is
 * slow, because they run for every interrupt of every CPU. */

/* Shorter ones, such as a tick of the timer, are not kept: they would push out
 * those that matter. */
#define INTERRUPTION_NS 20000

/* Since when all of the programs stand, set by user space. 0: not all of them do. */
volatile __u64 interrupts_since_ns = 0;

enum interrupt {
	INTERRUPT_HARD,
	INTERRUPT_SOFT,
};

static __always_inline void interrupt_began(enum interrupt kind)
{
	struct thread *thread = watched_thread(bpf_get_current_task_btf());

	if (thread)
		thread->poller.interrupted_ns[kind] = bpf_ktime_get_ns();
}

/* Counted last: who reads the others meanwhile finds no half of one. */
static __always_inline void keep_interruption(struct schedule *schedule, __u64 start_ns,
					      __u64 end_ns)
{
	struct interruption *interruption =
		&schedule->interruptions[schedule->interrupted % INTERRUPTIONS];

	interruption->start_ns = start_ns;
	interruption->end_ns = end_ns;
	__sync_lock_test_and_set(&schedule->interrupted, schedule->interrupted + 1);
}

static __always_inline void interrupt_ended(enum interrupt kind)
{
	struct thread *thread = watched_thread(bpf_get_current_task_btf());
	__u64 since_ns = interrupts_since_ns;

	if (!thread || !since_ns)
		return;
	__u64 start_ns = thread->poller.interrupted_ns[kind];
	__u64 end_ns = bpf_ktime_get_ns();
	thread->poller.interrupted_ns[kind] = 0;
	/* Within a softirq it is part of that one. */
	if (kind == INTERRUPT_HARD && thread->poller.interrupted_ns[INTERRUPT_SOFT] >= since_ns)
		return;
	/* What began before, or before the programs stood the last time, is another one. */
	bool began = start_ns >= since_ns;
	if (began && end_ns - start_ns < INTERRUPTION_NS)
		return;
	struct schedule *schedule = schedule_of(thread);
	if (!schedule)
		return;
	if (began)
		keep_interruption(schedule, start_ns, end_ns);
	else
		schedule->half_seen_ns = end_ns;
}

/* No interrupt lasts longer than its thread runs: what began is over, unseen. */
static __always_inline void forget_interrupts(struct poller *poller)
{
	poller->interrupted_ns[INTERRUPT_HARD] = 0;
	poller->interrupted_ns[INTERRUPT_SOFT] = 0;
}
