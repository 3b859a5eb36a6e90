/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "watched.h"

/* Keeps when interrupts and softirqs took the CPU from a watched thread for long:
 * it is the current thread meanwhile. */

/* Shorter ones, such as a tick of the timer, are not kept: they would push out
 * those that matter. */
#define INTERRUPTION_NS 20000

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

static __always_inline void interrupt_ended(enum interrupt kind)
{
	struct thread *thread = watched_thread(bpf_get_current_task_btf());

	if (!thread)
		return;
	__u64 start_ns = thread->poller.interrupted_ns[kind];
	__u64 end_ns = bpf_ktime_get_ns();
	thread->poller.interrupted_ns[kind] = 0;
	/* Within a softirq it is part of that one. */
	if (kind == INTERRUPT_HARD && thread->poller.interrupted_ns[INTERRUPT_SOFT])
		return;
	if (!start_ns || end_ns - start_ns < INTERRUPTION_NS)
		return;
	struct schedule *schedule = schedule_of(thread);
	if (!schedule)
		return;
	struct interruption *interruption =
		&schedule->interruptions[schedule->interrupted++ % INTERRUPTIONS];

	interruption->start_ns = start_ns;
	interruption->end_ns = end_ns;
}

/* No interrupt lasts longer than its thread runs: what began is over, unseen. */
static __always_inline void forget_interrupts(struct poller *poller)
{
	poller->interrupted_ns[INTERRUPT_HARD] = 0;
	poller->interrupted_ns[INTERRUPT_SOFT] = 0;
}
