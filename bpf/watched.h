/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "maps/free_schedules.h"
#include "maps/schedules.h"
#include "maps/threads.h"
#include "maps/watched_threads.h"

/* Threads are watched from their first post or poll until their end. */

/* The state of a thread that is watched, else NULL. For every other thread this is
 * all that a change of threads costs. */
static __always_inline struct thread *watched_thread(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);

	return thread && thread->poller.watched ? thread : NULL;
}

static __always_inline struct schedule *schedule_at(__u32 slot)
{
	return bpf_map_lookup_elem(&schedules, &slot);
}

static __always_inline struct schedule *schedule_of(const struct thread *thread)
{
	return schedule_at(thread->poller.watched - 1);
}

/* That of another thread, by its id. */
static __always_inline struct schedule *schedule_of_id(__u32 tid)
{
	__u32 *slot = bpf_map_lookup_elem(&watched_threads, &tid);

	return slot ? schedule_at(*slot) : NULL;
}

/* The time goes first, and whole: who reads this for an earlier thread sees by it that
 * it is another one's. */
static __always_inline void begin_schedule(__u32 slot)
{
	struct schedule *schedule = schedule_at(slot);

	if (!schedule)
		return;
	__sync_lock_test_and_set(&schedule->since_ns, bpf_ktime_get_ns());
	schedule->lost_ns = 0;
	schedule->woken_ns = 0;
	schedule->moves = 0;
	schedule->interrupted = 0;
	schedule->half_seen_ns = 0;
	schedule->waits_for = 0;
}

/* Begins to watch the running thread. What an earlier one with its number left
 * behind is overwritten. */
static __noinline void watch(struct thread *thread, __u32 tid)
{
	__u32 *known = bpf_map_lookup_elem(&watched_threads, &tid);
	__u32 slot = 0;

	thread->poller.watched = NEVER_WATCHED;
	if (known) {
		slot = *known;
	} else if (bpf_map_pop_elem(&free_schedules, &slot)) {
		count(LOSS_SCHEDULES_FULL);
		return;
	} else if (bpf_map_update_elem(&watched_threads, &tid, &slot, BPF_ANY)) {
		bpf_map_push_elem(&free_schedules, &slot, BPF_ANY);
		count(LOSS_SCHEDULES_FULL);
		return;
	}
	begin_schedule(slot);
	thread->poller.tid = tid;
	thread->poller.watched = slot + 1;
}

/* The running thread ends or executes another program; watched is what it is from now
 * on. Its schedule is given back under the id that it was taken for: a thread that
 * executes takes over the id of its process, also when it fails to and ends. Where its
 * state cannot be had, the next thread with its id takes the schedule over. */
static __always_inline void end_watch(__u32 watched)
{
	struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

	if (!thread || !thread->poller.watched)
		return;
	__u32 slot = thread->poller.watched - 1;
	__u32 tid = thread->poller.tid;
	bool has_one = thread->poller.watched != NEVER_WATCHED;

	thread->poller.watched = watched;
	if (has_one && !bpf_map_delete_elem(&watched_threads, &tid))
		bpf_map_push_elem(&free_schedules, &slot, BPF_ANY);
}
