/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/sites.h"
#include "receive.h"
#include "site.h"

/* A post that fails stores the work request that it refuses to *bad_wr. The probe
 * on that store stands for one on the return of every post. What the function
 * returns is not known there. */

static __always_inline void send_refused(struct queue *queue, struct call *call, __u64 bad)
{
	if (!call->returns && !call->refused)
		count_rejected(queue, 0);
	call->refused = 1;
	if (call->count)
		undo_from_bad(queue, call, bad);
	decide_unread(queue, call, false);
}

static __always_inline void receive_refused(struct queue *queue, struct call *call, __u64 bad)
{
	if (!call->refused)
		take_back(queue, call, bad);
	call->refused = 1;
}

/* Functions may have the site in common, and one file two probes: of those one is
 * for the call that the thread is inside of. */
static __always_inline bool is_for(struct call *call, struct site *site, __u32 library)
{
	return call->active && call->cookie == library && call->function == site->function;
}

static __always_inline void refusal_reached(struct pt_regs *ctx, __u64 cookie)
{
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);
	__u32 index = COOKIE_INDEX(cookie);

	if (!seen.library)
		return;
	struct site *site = bpf_map_lookup_elem(&sites, &index);
	if (!site)
		return;
	struct call *call = site->function == POST_SEND ? &seen.thread->post
							: &seen.thread->receive;
	if (!is_for(call, site, seen.cookie))
		return;
	if (site->cq.base.kind != SITE_PLACE_NONE && locate(ctx, &site->cq) != call->object) {
		/* Of a call that another one interrupted: what it was of is
		 * forgotten. */
		struct caller caller = caller_of(seen.task);

		count(LOSS_BAD_WR);
		note_loss(&caller);
		return;
	}
	struct queue *queue = queue_of_call(call);
	if (!queue)
		return;
	__u64 bad = locate(ctx, &site->wc);
	if (site->function == POST_SEND)
		send_refused(queue, call, bad);
	else
		receive_refused(queue, call, bad);
}
