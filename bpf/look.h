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

/* The poll before, whose entry was seen, came back empty. */
static __always_inline void note_empty(struct thread *thread)
{
	struct caller caller = current_caller();
	struct cq *cq = cq_of(&caller, thread->look_cq);

	if (!cq || thread->look_ns <= cq->short_poll_ns)
		return;
	cq->short_poll_ns = thread->look_ns;
	cq->looker = caller.tid;
	cq->paused_ns = thread->look_paused_ns;
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
	__u64 since = thread->look_ns - cq->short_poll_ns;
	__u64 paused = thread->look_paused_ns - cq->paused_ns;

	if (cq->looker != delivery->caller.tid || thread->look_ns < cq->short_poll_ns)
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
