/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "match.h"
#include "post.h"

/* Receives are counted, never timed: a buffer waits for as long as the peer
 * likes. */

static __always_inline void complete_receive(struct queue *queue)
{
	__u64 done = __sync_fetch_and_add(&queue->recv_completed, 1) + 1;

	if (queue->recv_known && done == *(volatile __u64 *)&queue->recv_posted)
		__sync_fetch_and_add(&queue->recv_empty, 1);
}

static __always_inline void deliver_receive(struct queue *queue, __u32 device_index,
					    struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;
	bool failed = delivery->wc.status != IBV_WC_SUCCESS;
	__u64 bytes = failed ? 0 : delivery->wc.byte_len;
	struct series *series = series_for(delivery, device_index, OP_RECV);
	struct device *device = device_at(device_index);

	count(COMPLETIONS_RECEIVED);
	if (series)
		add_completion(series, 0, bytes);
	if (device)
		__sync_fetch_and_add(&device->bytes[1], bytes);
	if (!queue)
		return;
	if (!queue->srq) {
		complete_receive(queue);
		return;
	}
	struct queue_key key = queue_key_of(&delivery->caller, queue->srq, SRQ_NUMBER);
	__u32 slot;
	struct queue *shared = recent_queue(thread, &key, &slot);
	if (shared)
		complete_receive(shared);
}

/* The queue that receives are posted to: of a QP, or of an SRQ. */
static __always_inline struct queue *receive_queue(struct thread *thread, __u64 object, bool shared,
						   __u32 *slot)
{
	struct caller *caller = &thread->caller;

	if (!shared) {
		struct ibv_qp_head qp;

		if (!read_qp(&qp, object)) {
			count(LOSS_READ_QP);
			return NULL;
		}
		return queue_of_qp(thread, caller, &qp, slot);
	}
	__u64 context;
	struct queue_key key = queue_key_of(caller, object, SRQ_NUMBER);
	struct queue *queue = recent_queue(thread, &key, slot);
	if (queue)
		return queue;
	if (!read_srq_context(&context, object)) {
		count(LOSS_READ_QP);
		return NULL;
	}
	return create_queue(&key, caller, context, slot);
}

/* Counts the receives of a list whose first one is at wr. */
static __always_inline struct chain measure_receives(__u64 wr)
{
	__u64 next;

	if (!read_next_wr(&next, wr))
		return unreadable_chain(wr);
	return measure_chain(next);
}

/* Counts the receives of the call that is being entered, by thread->caller. */
static __always_inline void follow_receive(struct thread *thread, struct call *call, bool shared)
{
	__u32 slot = NO_SLOT;
	struct queue *queue = receive_queue(thread, call->object, shared, &slot);

	if (!queue)
		return;
	queue->library = call->cookie;
	if (queue->recv_posted == 0 && seen_from_start(queue, library_at(call->cookie)))
		queue->recv_known = 1;
	struct chain chain = measure_receives(call->list);
	if (chain.deeper || chain.unreadable) {
		count(LOSS_RECEIVE_CHAIN);
		queue->recv_known = 0;
	}
	__sync_fetch_and_add(&queue->recv_posted, chain.count);
	call->slot = slot;
	call->generation = queue->generation;
	call->count = chain.count;
}

static __always_inline void receive_entered(struct pt_regs *ctx, enum post_function function,
					    __u32 cookie)
{
	struct observed seen = observe(cookie, HIT_ENTRY);
	struct thread *thread = seen.thread;

	if (!seen.library)
		return;
	if (!enter_call(&thread->receive, ctx, cookie, seen.library, bpf_ktime_get_ns(),
			has_returns(seen.library, function)))
		return;
	settle_post(thread);
	struct call *call = &thread->receive;
	thread->caller = caller_of(seen.task);
	call->function = function;
	call->object = ARG1(ctx);
	call->list = ARG2(ctx);
	call->bad = ARG3(ctx);
	call->slot = NO_SLOT;
	call->count = 0;
	call->refused = 0;
	follow_receive(thread, call, function == POST_SHARED_RECEIVE);
}

static __always_inline void receive_returned(int result, __u32 cookie)
{
	struct observed seen = observe(cookie, HIT_RETURN);

	if (!seen.library)
		return;
	struct call *call = &seen.thread->receive;
	if (!call->returns || leave_call(call, cookie) != LEFT || result == 0 || call->refused)
		return;
	note_unmarked(seen.library,
		      call->function == POST_RECEIVE ? POST_RECEIVE : POST_SHARED_RECEIVE);
	struct queue *queue = queue_of_call(call);
	if (queue)
		take_back(queue, call, read_bad_wr(call->bad));
}
