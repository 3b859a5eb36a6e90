/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "absence.h"
#include "interruption.h"

/* A completion site does not see empty polls, and so not when the thread last
 * looked. What is left as evidence of a late poller is that its thread was not
 * running: it looked at the latest before it left its CPU, and if it delivers
 * shortly after it came back, the completion may have waited since then. */
#define BACK_NS 50000

/* How much of a long absence is shortly: on a busy or an emulated machine the
 * first poll after it takes more than BACK_NS, and that a completion arrives by
 * chance in this fraction of the time is unlikely. */
#define BACK_FRACTION 16

/* Whether the running thread, which is about to leave its CPU, sleeps until
 * something happens. That may be the completion itself, as in a read of the
 * completion channel, and then nobody was late. A thread that was preempted, is
 * held up in the kernel, or sleeps for a time of its own choice is. */
static __always_inline bool awaits_event(struct task_struct *task, bool is_preempted)
{
	if (is_preempted || !(task->__state & TASK_INTERRUPTIBLE))
		return false;
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct pt_regs copy = {};

	bpf_probe_read_kernel(&copy, sizeof(copy), registers);
	return SYSCALL(&copy) != SYSCALL_NANOSLEEP && SYSCALL(&copy) != SYSCALL_CLOCK_NANOSLEEP;
}

/* Evidence of a thread that is about to leave its CPU. */
static __always_inline void note_off(struct poller *poller, struct task_struct *task,
				     bool is_preempted, __u64 now)
{
	if (awaits_event(task, is_preempted)) {
		/* What was before says nothing of what it finds when woken. */
		poller->off_since = 0;
		poller->off_end = 0;
		poller->awaits_ns = now;
		return;
	}
	poller->off_since = now;
}

static __always_inline void note_on(struct poller *poller, __u64 now)
{
	if (!poller->off_since)
		return;
	poller->off_start = poller->off_since;
	poller->off_end = now;
	poller->off_since = 0;
}

static __always_inline void note_leaving(struct task_struct *task, struct task_struct *next,
					 bool is_preempted)
{
	struct thread *thread = watched_thread(task);

	if (!thread)
		return;
	__u64 now = bpf_ktime_get_ns();
	forget_interrupts(&thread->poller);
	note_off(&thread->poller, task, is_preempted, now);
	keep_leaving(thread, task, next, is_preempted, now);
}

static __always_inline void note_coming(struct task_struct *task, struct task_struct *previous)
{
	struct thread *thread = watched_thread(task);

	if (!thread)
		return;
	__u64 now = bpf_ktime_get_ns();
	note_on(&thread->poller, now);
	keep_return(thread, previous, now);
}

static __always_inline void note_switch(struct task_struct *previous, struct task_struct *next,
					bool is_preempted)
{
	count_turn(previous, next);
	note_leaving(previous, next, is_preempted);
	note_coming(next, previous);
}

static __always_inline bool is_just_back(const struct poller *poller, __u64 now)
{
	__u64 back = now - poller->off_end;

	return poller->off_end &&
	       (back < BACK_NS || back < (poller->off_end - poller->off_start) / BACK_FRACTION);
}

/* Notes when the delivering thread left its CPU, if it has just come back. That
 * says nothing of what it posted since. */
static __always_inline void note_absence(struct poller *poller, struct delivery *delivery)
{
	delivery->short_poll_ns = 0;
	delivery->evidence_ns = 0;
	if (is_just_back(poller, delivery->now)) {
		delivery->short_poll_ns = poller->off_start;
		delivery->evidence_ns = poller->off_end;
	}
}
