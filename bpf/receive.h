/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "match.h"

/* Receives are counted, never timed: a buffer waits for as long as the peer
 * likes. */

static __always_inline void complete_receive(struct queue *queue)
{
	__u64 done = __sync_fetch_and_add(&queue->recv_completed, 1) + 1;

	if (queue->recv_known && done == *(volatile __u64 *)&queue->recv_posted)
		__sync_fetch_and_add(&queue->recv_empty, 1);
}

static __always_inline void deliver_receive(struct queue *queue, __u32 device_index, struct delivery *delivery)
{
	bool failed = delivery->wc.status != IBV_WC_SUCCESS;
	__u64 bytes = failed ? 0 : delivery->wc.byte_len;
	struct series *series = series_for(delivery, device_index, OP_RECV);
	struct device *device = device_at(device_index);

	count(COMPLETIONS_RECEIVED);
	if (series)
		add_completion(series, 1, bytes);
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
	struct queue *shared = find_queue(&key, &slot);
	if (shared)
		complete_receive(shared);
}

/* The queue that receives are posted to: of a QP, or of an SRQ. */
static __always_inline struct queue *receive_queue(struct caller *caller, __u64 object, bool shared, __u32 *slot)
{
	if (!shared) {
		struct ibv_qp_head qp;

		if (bpf_probe_read_user(&qp, sizeof(qp), (void *)object)) {
			count(LOSS_READ_QP);
			return NULL;
		}
		return queue_of_qp(caller, &qp, slot);
	}
	__u64 context;
	struct queue_key key = queue_key_of(caller, object, SRQ_NUMBER);
	struct queue *queue = find_queue(&key, slot);
	if (queue)
		return queue;
	if (bpf_probe_read_user(&context, sizeof(context), (void *)(object + IBV_SRQ_CONTEXT))) {
		count(LOSS_READ_QP);
		return NULL;
	}
	return create_queue(&key, caller, context, slot);
}

static __always_inline void receive_entered(struct pt_regs *ctx, bool shared, __u32 cookie)
{
	struct thread *thread = this_thread();

	if (!thread || !observes(thread, cookie, HIT_ENTRY))
		return;
	if (!enter_call(&thread->receive, ctx, cookie, bpf_ktime_get_ns()))
		return;
	struct call *call = &thread->receive;
	struct caller caller = current_caller();
	__u64 wr = ARG2(ctx);
	__u32 slot = NO_SLOT;
	struct queue *queue = receive_queue(&caller, ARG1(ctx), shared, &slot);

	call->slot = NO_SLOT;
	call->count = 0;
	if (!queue)
		return;
	queue->library = cookie;
	if (queue->recv_posted == 0 && seen_from_start(queue, cookie))
		queue->recv_known = 1;
	struct chain chain = measure_chain(wr);
	if (chain.deeper || chain.unreadable) {
		count(LOSS_RECEIVE_CHAIN);
		queue->recv_known = 0;
	}
	__sync_fetch_and_add(&queue->recv_posted, chain.count);
	call->slot = slot;
	call->generation = queue->generation;
	call->count = chain.count;
	call->list = wr;
	call->bad = ARG3(ctx);
}

static __always_inline void receive_returned(int result, __u32 cookie)
{
	struct thread *thread = this_thread();

	if (!thread || !observes(thread, cookie, HIT_RETURN))
		return;
	if (leave_call(&thread->receive, cookie) != LEFT || result == 0)
		return;
	struct call *call = &thread->receive;
	struct queue *queue = queue_of_call(call);
	if (!queue)
		return;
	struct bad_search search = {.wr = call->list, .left = call->count, .index = some_zero};
	if (bpf_probe_read_user(&search.bad, sizeof(search.bad), (void *)call->bad) == 0)
		LOOP(find_bad, &search);
	if (search.found)
		__sync_fetch_and_sub(&queue->recv_posted, call->count - search.index);
	else
		queue->recv_known = 0;
}
