/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "cq.h"
#include "maps/poll_functions.h"
#include "observe.h"
#include "refuse.h"

/* A probe on the entry of poll_cq beside completion sites, now and then for a
 * moment. When a thread enters the next poll and no site was reached meanwhile, the
 * one before came back empty: the evidence of when the thread looked in vain, at
 * half the price of entry and return. */

/* A thread that neither enters a poll nor takes a completion for longer does something
 * else meanwhile. */
#define POLL_PAUSE_NS 20000

/* What stands for the thread that looked last while another one is noted. */
#define LOOKER_CHANGES (~0u)

/* The poll before, whose entry was seen, came back empty. */
static __always_inline void note_empty(struct thread *thread)
{
	struct caller caller = current_caller();
	struct cq *cq = cq_of(&caller, thread->look_cq);

	if (!cq || thread->look_ns <= cq->short_poll_ns)
		return;
	/* Of two threads at one moment one is noted, whole. */
	if (__sync_lock_test_and_set(&cq->looker, LOOKER_CHANGES) == LOOKER_CHANGES)
		return;
	cq->short_poll_ns = thread->look_ns;
	cq->paused_ns = thread->look_paused_ns;
	__sync_lock_test_and_set(&cq->looker, caller.tid);
}

static __always_inline void looked(struct pt_regs *ctx, __u64 cookie)
{
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);
	struct thread *thread = seen.thread;
	__u32 index = COOKIE_INDEX(cookie);

	if (!seen.library)
		return;
	/* The same file through another path: its probe has seen this entry. */
	if (COOKIE_LIBRARY(thread->look_cookie) != COOKIE_LIBRARY(cookie) &&
	    thread->look_stack == STACK(ctx) && thread->look_instruction == IP(ctx) &&
	    !is_dropped(COOKIE_LIBRARY(thread->look_cookie)))
		return;
	settle_post(thread);
	struct poll_function *function = bpf_map_lookup_elem(&poll_functions, &index);
	if (function && thread->look_cookie == cookie && !thread->look_hits &&
	    thread->look_ns >= function->since_ns)
		note_empty(thread);
	__u64 now = bpf_ktime_get_ns();
	__u64 polled_ns = thread->site_ns > thread->look_ns ? thread->site_ns : thread->look_ns;
	if (now - polled_ns > POLL_PAUSE_NS)
		thread->look_paused_ns += now - polled_ns;
	thread->look_cookie = cookie;
	thread->look_stack = STACK(ctx);
	thread->look_instruction = IP(ctx);
	thread->look_cq = ARG1(ctx);
	thread->look_hits = 0;
	thread->look_ns = now;
}

/* For how long of the time since its last empty poll of the CQ this thread polled
 * others. */
static __always_inline void note_elsewhere(struct thread *thread, struct cq *cq,
					   struct delivery *delivery)
{
	bool own = *(volatile __u32 *)&cq->looker == delivery->caller.tid;
	__u64 looked_ns = *(volatile __u64 *)&cq->short_poll_ns;
	__u64 since = thread->look_ns - looked_ns;
	__u64 paused = thread->look_paused_ns - *(volatile __u64 *)&cq->paused_ns;

	own = own && *(volatile __u32 *)&cq->looker == delivery->caller.tid;
	if (!own || thread->look_ns < looked_ns)
		return;
	delivery->has_elsewhere = 1;
	delivery->elsewhere_ns = since > paused ? since - paused : 0;
}

/* Since when a completion that this thread delivers now may have waited, by
 * the polls that were seen; 0 when none was. */
static __always_inline __u64 last_look(struct thread *thread, struct delivery *delivery)
{
	struct poll_function *function;
	struct cq_key key = { .incarnation = delivery->caller.incarnation,
			      .cq = delivery->cq_address,
			      .tgid = delivery->caller.tgid };

	delivery->has_elsewhere = 0;
	if (!thread->look_ns)
		return 0;
	__u32 index = COOKIE_INDEX(thread->look_cookie);
	function = bpf_map_lookup_elem(&poll_functions, &index);
	if (!function || !function->looks || thread->look_cq != delivery->cq_address)
		return 0;
	struct cq *cq = bpf_map_lookup_elem(&cqs, &key);
	if (!cq || cq->short_poll_ns < function->since_ns)
		return 0;
	/* A thread that slept until something happened since then may have waited
	 * for the completion itself. */
	if (cq->short_poll_ns < thread->poller.awaits_ns)
		return 0;
	note_elsewhere(thread, cq, delivery);
	/* Another thread's poll that began during this one says nothing of what
	 * this one found. */
	return cq->short_poll_ns < thread->look_ns ? cq->short_poll_ns : thread->look_ns;
}
