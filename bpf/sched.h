/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/threads.h"

/* A completion site does not see empty polls, and so not when the thread last
 * looked. What is left as evidence of a late poller is that its thread was not
 * running: it looked at the latest before it left its CPU, and if it delivers
 * shortly after it came back, the completion may have waited since then. */
#define BACK_NS 50000

static __always_inline void note_off(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);

	if (thread && thread->poller.watched)
		thread->poller.off_since = bpf_ktime_get_ns();
}

static __always_inline void note_on(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);

	if (!thread || !thread->poller.off_since)
		return;
	thread->poller.off_start = thread->poller.off_since;
	thread->poller.off_end = bpf_ktime_get_ns();
	thread->poller.off_since = 0;
}

static __always_inline void note_switch(struct task_struct *previous, struct task_struct *next)
{
	note_off(previous);
	note_on(next);
}

/* Notes when the delivering thread left its CPU, if it has just come back. That
 * says nothing of what it posted since. */
static __always_inline void note_absence(struct poller *poller, struct delivery *delivery)
{
	delivery->short_poll_ns = 0;
	delivery->evidence_ns = 0;
	poller->watched = 1;
	if (poller->off_end && delivery->now - poller->off_end < BACK_NS) {
		delivery->short_poll_ns = poller->off_start;
		delivery->evidence_ns = poller->off_end;
	}
}
