/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "receive.h"

static __always_inline void poll_entered(__u64 cq, __u32 asked, __u64 wc, __u32 cookie, __u64 stack)
{
	struct thread *thread = this_thread();

	if (!thread || !enter_call(&thread->poll, cookie, stack, bpf_ktime_get_ns()))
		return;
	thread->poll.object = cq;
	thread->poll.list = wc;
	thread->poll.count = asked;
}

enum direction {
	DIRECTION_SEND,
	DIRECTION_RECEIVE,
	DIRECTION_UNKNOWN,
};

/* A failed completion does not say whether it is of a send or a receive: its
 * opcode is not written (ibv_poll_cq(3)). The CQ may tell, or that there is
 * nothing of the one kind outstanding. */
static __noinline enum direction direction_of_failure(struct queue *queue, struct delivery *delivery)
{
	if (queue->send_cq != queue->recv_cq)
		return delivery->cq_address == queue->recv_cq ? DIRECTION_RECEIVE : DIRECTION_SEND;

	bool receives_due = queue->srq || !queue->recv_known || queue->recv_posted > queue->recv_completed;
	struct search search;
	search_queue(&search, queue, delivery->wc.wr_id);
	bool send_due = search.is_found || search.has_unsignaled;

	if (send_due)
		return receives_due ? DIRECTION_UNKNOWN : DIRECTION_SEND;
	return receives_due ? DIRECTION_RECEIVE : DIRECTION_SEND;
}

static __always_inline void deliver_failure(struct queue *queue, __u32 slot, struct delivery *delivery)
{
	switch (direction_of_failure(queue, delivery)) {
	case DIRECTION_RECEIVE:
		deliver_receive(queue, queue->device, delivery);
		break;
	case DIRECTION_SEND:
		deliver_send(slot);
		break;
	case DIRECTION_UNKNOWN:
		/* Which entry it was of stays open, and so what the next ones retire. */
		count_unmatched(delivery, queue->device, COMPLETIONS_AMBIGUOUS);
		lose_sync(queue);
		break;
	}
}

/* A completion of a queue of which nothing was posted under our eyes. */
static __noinline void deliver_stranger(struct queue_key *key, struct delivery *delivery)
{
	__u32 device = device_of_context(key->object);
	if (is_ignored_device(device))
		return;
	count(COMPLETIONS_SEEN);
	bool untracked = bpf_map_lookup_elem(&untracked_queues, key) != NULL;

	if (delivery->wc.status == IBV_WC_SUCCESS && delivery->wc.opcode & IBV_WC_RECV)
		deliver_receive(NULL, device, delivery);
	else
		count_unmatched(delivery, device, untracked ? COMPLETIONS_UNMATCHED : COMPLETIONS_BEFORE_ATTACH);
}

static __always_inline void deliver(struct delivery *delivery)
{
	struct queue_key key =
		queue_key_of(&delivery->caller, delivery->cq_context, delivery->wc.qp_num & 0xffffff);
	__u32 slot;
	struct queue *queue = find_queue(&key, &slot);

	if (!queue) {
		deliver_stranger(&key, delivery);
		return;
	}
	if (is_ignored_device(queue->device))
		return;
	count(COMPLETIONS_SEEN);
	if (delivery->wc.status != IBV_WC_SUCCESS)
		deliver_failure(queue, slot, delivery);
	else if (delivery->wc.opcode & IBV_WC_RECV)
		deliver_receive(queue, queue->device, delivery);
	else
		deliver_send(slot);
}

struct batch {
	struct delivery *delivery;
	__u64 wc;
	__u32 left;
	__u32 unread;
};

LOOP_BODY(deliver_completion, struct batch)
{
	if (state->left == 0)
		return STOP;
	state->left--;
	__u64 address = state->wc;
	state->wc += sizeof(struct ibv_wc);
	if (bpf_probe_read_user(&state->delivery->wc, sizeof(struct ibv_wc), (void *)address)) {
		state->unread++;
		return NEXT;
	}
	deliver(state->delivery);
	return NEXT;
}

/* Completions went by unseen: no queue of this CQ is certain any more. */
static __always_inline void lose_completions(struct cq *cq, __u32 reason, __u32 n)
{
	count_n(reason, n);
	if (cq)
		__sync_fetch_and_add(&cq->loss_epoch, 1);
	else
		__sync_fetch_and_add(&lost_completions, 1);
}

static __always_inline void deliver_batch(struct thread *thread, struct cq *cq, __u32 n)
{
	struct delivery *delivery = &thread->delivery;
	struct batch batch = {
		.delivery = delivery,
		.wc = thread->poll.list,
		.unread = some_zero,
		.left = n > BATCH_MAX ? BATCH_MAX : n,
	};

	delivery->cq_address = thread->poll.object;
	delivery->short_poll_ns = cq ? cq->short_poll_ns : 0;
	delivery->loss_epoch = (cq ? cq->loss_epoch : 0) + lost_completions;
	delivery->now = bpf_ktime_get_ns();
	LOOP(deliver_completion, &batch);
	if (batch.unread)
		lose_completions(cq, LOSS_READ_WC, batch.unread);
	if (n > BATCH_MAX)
		lose_completions(cq, LOSS_BATCH_TOO_DEEP, n - BATCH_MAX);
}

static __always_inline void poll_returned(int result, __u32 cookie)
{
	struct thread *thread = this_thread();

	if (!thread)
		return;
	struct call *call = &thread->poll;
	__u32 n = result > 0 ? result : 0;
	switch (leave_call(call, cookie)) {
	case LEFT_DUPLICATE:
		count_n(COMPLETIONS_SEEN, n);
		count_n(COMPLETIONS_DUPLICATE, n);
		return;
	case LEFT_UNKNOWN:
		count(LOSS_RETURN_WITHOUT_ENTRY);
		return;
	case LEFT:
		break;
	}
	if (n > call->count)
		n = call->count;

	struct delivery *delivery = &thread->delivery;
	delivery->caller = current_caller();
	if (n && is_ignored_process(&delivery->caller))
		return;
	struct cq *cq = cq_of(&delivery->caller, call->object);
	if (n) {
		if (bpf_probe_read_user(&delivery->cq_context, sizeof(delivery->cq_context),
					(void *)(call->object + IBV_CQ_CONTEXT))) {
			lose_completions(cq, LOSS_READ_CQ, n);
			return;
		}
		deliver_batch(thread, cq, n);
	}
	if (cq && n < call->count && call->entry_ns > cq->short_poll_ns)
		cq->short_poll_ns = call->entry_ns;
}
