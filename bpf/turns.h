/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/waiting.h"
#include "stand_in.h"
#include "watched.h"

/* Who has a CPU while watched threads want it: each turn of another thread is
 * counted when it ends. Where nobody that is watched waits, a change of threads costs
 * one look. */

/* A change of threads on a CPU that somebody wants. */
struct turn {
	__u64 now;
	__u32 cpu;
	__u32 pad;
	struct stand_in over, next;
};

/* Says whether the thread still waits. */
__noinline int share_turn(__u32 slot, struct turn *turn)
{
	struct schedule *schedule = schedule_at(slot);

	if (!schedule || !turn || schedule->waits_for != turn->cpu + 1)
		return 0;
	if (turn->now > schedule->counted_ns) {
		turn->over.ns = turn->now - schedule->counted_ns;
		add_turn(&schedule->stand_ins, &turn->over);
		schedule->counted_ns = turn->now;
	}
	schedule->last = turn->next;
	return 1;
}

static __always_inline bool is_wanted(const struct waiters *waiters)
{
	__u32 some = 0;

	for (int i = 0; i < WAITERS; i++)
		some |= waiters->schedules[i];
	return some;
}

static __always_inline void count_turn(struct task_struct *previous, struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waiters *waiters = bpf_map_lookup_elem(&waiting, &cpu);

	if (!waiters || !is_wanted(waiters))
		return;
	struct turn turn = { .now = bpf_ktime_get_ns(), .cpu = cpu };

	describe(&turn.over, previous);
	describe(&turn.next, next);
	for (int i = 0; i < WAITERS; i++) {
		__u32 waiter = waiters->schedules[i];

		if (waiter && !share_turn(waiter - 1, &turn))
			waiters->schedules[i] = 0;
	}
}

/* A watched thread wants a CPU from a moment on. It may be on the list from before:
 * it is taken off by a change of threads on that CPU. */
static __always_inline void wait_for(__u32 slot, struct schedule *schedule, __u32 cpu,
				     __u64 since_ns)
{
	struct waiters *waiters = bpf_map_lookup_elem(&waiting, &cpu);
	__u32 waiter = slot + 1;

	schedule->counted_ns = since_ns;
	schedule->waits_for = cpu + 1;
	if (!waiters)
		return;
	for (int i = 0; i < WAITERS; i++)
		if (waiters->schedules[i] == waiter)
			return;
	for (int i = 0; i < WAITERS; i++)
		if (__sync_bool_compare_and_swap(&waiters->schedules[i], 0, waiter))
			return;
}
