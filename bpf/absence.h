/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "turns.h"

/* Keeps when watched threads were away from their CPU, why, and who ran instead. */

/* Of task_struct.__state, include/linux/sched.h. */
#define TASK_INTERRUPTIBLE 0x1
#define TASK_HELD (0x4 | 0x8 | 0x8000) /* __TASK_STOPPED, __TASK_TRACED, TASK_FROZEN */
#define TASK_WAKING 0x200

/* The kernel tells that it wakes a thread before it waits for that thread to have
 * left its CPU. A wake-up that was told so shortly before is of that absence. */
#define WAKING_NS 50000

static __always_inline bool is_away(const struct schedule *schedule)
{
	return schedule->moves & 1;
}

/* The absence that the thread is in, or its next. */
static __always_inline struct absence *present_absence(struct schedule *schedule)
{
	return &schedule->absences[(schedule->moves >> 1) % ABSENCES];
}

static __always_inline enum absence_kind kind_of_absence(struct task_struct *task,
							 bool is_preempted)
{
	__u32 state = task->__state;

	/* A thread that yields stays runnable, one that is being woken is again. */
	if (is_preempted || state == 0 || (state & TASK_WAKING))
		return ABSENT_RUNNABLE;
	return state & TASK_HELD ? ABSENT_HELD : ABSENT_ASLEEP;
}

/* Since when the thread wanted a CPU in an absence that ends now; 0: not known. */
static __always_inline __u64 wanted_since(const struct absence *absence, __u64 woken_ns)
{
	if (absence->kind == ABSENT_RUNNABLE)
		return absence->off_ns;
	if (woken_ns >= absence->off_ns)
		return woken_ns;
	return absence->off_ns - woken_ns < WAKING_NS ? absence->off_ns : 0;
}

static __always_inline void keep_leaving(const struct thread *thread, struct task_struct *task,
					 struct task_struct *next, bool is_preempted, __u64 now)
{
	struct schedule *schedule = schedule_of(thread);

	if (!schedule)
		return;
	if (is_away(schedule)) {
		/* When it came back went by unseen. */
		struct absence *before = present_absence(schedule);

		before->wanted_ns = before->off_ns;
		before->on_ns = before->off_ns;
		schedule->lost_ns = now;
		schedule->moves++;
	}
	struct absence *absence = present_absence(schedule);

	absence->off_ns = now;
	absence->on_ns = 0;
	absence->kind = kind_of_absence(task, is_preempted);
	absence->off_cpu = bpf_get_smp_processor_id();
	__builtin_memset(&schedule->stand_ins, 0, sizeof(schedule->stand_ins));
	__builtin_memset(&absence->instead, 0, sizeof(absence->instead));
	if (absence->kind == ABSENT_RUNNABLE)
		describe(&absence->instead, next);
	schedule->last = absence->instead;
	__sync_lock_test_and_set(&schedule->moves, schedule->moves + 1);
	if (wanted_since(absence, schedule->woken_ns))
		wait_for(thread->poller.watched - 1, schedule, absence->off_cpu, now);
}

/* Notes who ran for the longest time that a thread wanted the CPU which it has now.
 * After a sleep it may have been given another one than it was expected on; there it
 * follows who kept it waiting, and so where the turns were not counted. */
static __always_inline void note_instead(const struct thread *thread, struct schedule *schedule,
					 struct absence *absence, struct task_struct *previous,
					 __u64 now)
{
	if (absence->kind == ABSENT_RUNNABLE && schedule->last.tid != thread->poller.tid &&
	    now > schedule->counted_ns) {
		/* It was taken to another CPU in the last one's turn. The first one may
		 * have counted that turn since this one read the clock. */
		schedule->last.ns = now - schedule->counted_ns;
		add_turn(&schedule->stand_ins, &schedule->last);
	}
	struct stand_in *longest = longest_of(&schedule->stand_ins);

	if (longest->ns &&
	    (absence->kind == ABSENT_RUNNABLE || schedule->waits_for == absence->on_cpu + 1)) {
		absence->instead = *longest;
		return;
	}
	describe(&absence->instead, previous);
	absence->instead.ns = now - absence->wanted_ns;
}

static __always_inline void keep_return(const struct thread *thread, struct task_struct *previous,
					__u64 now)
{
	struct schedule *schedule = schedule_of(thread);

	if (!schedule)
		return;
	if (!is_away(schedule)) {
		/* When it left went by unseen. */
		schedule->lost_ns = now;
		return;
	}
	struct absence *absence = present_absence(schedule);

	absence->wanted_ns = wanted_since(absence, schedule->woken_ns);
	if (!absence->wanted_ns) {
		absence->wanted_ns = now;
		schedule->lost_ns = now;
	}
	absence->on_cpu = bpf_get_smp_processor_id();
	note_instead(thread, schedule, absence, previous, now);
	schedule->waits_for = 0;
	absence->on_ns = now;
	/* A wake-up is of one absence: what is told until the next begins is of that. */
	schedule->woken_ns = 0;
	__sync_lock_test_and_set(&schedule->moves, schedule->moves + 1);
}

/* A sleeping thread wants a CPU from now on: turns before kept it from none. */
static __always_inline void begin_wait(const struct thread *thread, struct schedule *schedule)
{
	schedule->waits_for = 0;
	__builtin_memset(&schedule->stand_ins, 0, sizeof(schedule->stand_ins));
	__builtin_memset(&schedule->last, 0, sizeof(schedule->last));
	wait_for(thread->poller.watched - 1, schedule, present_absence(schedule)->off_cpu,
		 schedule->woken_ns);
}

/* The thread is wanted to run. */
static __always_inline void keep_waking(struct task_struct *task)
{
	struct thread *thread = watched_thread(task);

	if (!thread)
		return;
	struct schedule *schedule = schedule_of(thread);

	if (!schedule)
		return;
	schedule->woken_ns = bpf_ktime_get_ns();
	if (is_away(schedule) && present_absence(schedule)->kind != ABSENT_RUNNABLE)
		begin_wait(thread, schedule);
}
