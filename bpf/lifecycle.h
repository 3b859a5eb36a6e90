/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "post.h"

/* What the control path of a QP says of its queue. */

/* Whether a QP that went from one state to another, as libibverbs saw it, has
 * nothing outstanding: RESET drops what there was, and before RTS sends are
 * refused. */
static __always_inline bool is_empty_after(__u32 before, __u32 state)
{
	switch (state) {
	case IBV_QPS_RESET:
		return true;
	case IBV_QPS_INIT:
		return before == IBV_QPS_RESET || before == IBV_QPS_INIT;
	case IBV_QPS_RTR:
		return before == IBV_QPS_INIT;
	case IBV_QPS_RTS:
		return before == IBV_QPS_INIT || before == IBV_QPS_RTR;
	default:
		return false;
	}
}

/* What a QP was created with outlives what was posted to it. */
static __always_inline void inherit(struct queue *queue, struct queue *before)
{
	queue->limit = before->limit;
	queue->sig_all = before->sig_all;
	queue->port = before->port;
	queue->remote_qp = before->remote_qp;
}

/* A QP went from one state to another. Returns the queue by the key, as it is from
 * now on; NULL: there is none. */
static __always_inline struct queue *reach_state(struct queue_key *key, struct queue *queue,
						 struct ibv_qp_head *qp, struct caller *caller,
						 __u32 from, __u32 state)
{
	__u32 slot = 0;
	bool empty = is_empty_after(from, state);
	struct queue *before = queue;

	if (empty && queue && (queue->posted || (queue->recv_posted && state == IBV_QPS_RESET))) {
		end_queue(key, queue, END_RESET);
		queue = NULL;
	}
	if (empty && !queue) {
		queue = create_queue(key, caller, qp->context, &slot);
		if (queue && before)
			inherit(queue, before);
	}
	if (!queue)
		return NULL;
	learn_qp(queue, qp);
	if (empty)
		queue->aligned_ns = bpf_ktime_get_ns();
	return queue;
}

/* The queue of a QP that was just created: its number may have belonged to one
 * whose end was not seen. */
static __always_inline struct queue *begin_queue(struct queue_key *key, struct queue *queue,
						 struct ibv_qp_head *qp, struct caller *caller)
{
	__u32 slot = 0;

	if (queue && queue->posted) {
		end_queue(key, queue, END_DESTROY);
		queue = NULL;
	}
	if (!queue)
		queue = create_queue(key, caller, qp->context, &slot);
	if (!queue)
		return NULL;
	learn_qp(queue, qp);
	queue->aligned_ns = bpf_ktime_get_ns();
	return queue;
}
