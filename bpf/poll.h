/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/poll_functions.h"
#include "observe.h"
#include "receive.h"

static __always_inline struct poll_function *function_at(__u32 index)
{
	return bpf_map_lookup_elem(&poll_functions, &index);
}

/* Whether the return of the call that the thread is in delivers. That is settled
 * once for each call, at its entry, so that no completion is delivered both by a
 * site and by a return, or by neither, when user space changes from the one to
 * the other. A call whose return was not seen is over when user space begins
 * anew. */
static __always_inline bool return_delivers(struct call *call)
{
	struct poll_function *function;

	if (!call->active || !call->returns)
		return false;
	function = function_at(call->function);
	return function && call->entry_ns >= function->since_ns;
}

static __always_inline void leave_inside(__u32 index)
{
	struct poll_function *function = function_at(index);

	if (function)
		__sync_fetch_and_sub(&function->inside, 1);
}

static __always_inline void poll_entered(struct pt_regs *ctx, __u64 cookie)
{
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);
	struct thread *thread = seen.thread;

	if (!seen.library)
		return;
	settle_post(thread);
	struct poll_function *function = function_at(COOKIE_INDEX(cookie));
	bool abandoned = return_delivers(&thread->poll);
	__u32 before = thread->poll.function;
	if (!function)
		return;
	if (!function->returns) {
		if (thread->poll.cookie == seen.cookie)
			thread->poll.active = 0;
		if (abandoned && !thread->poll.active)
			leave_inside(before);
		return;
	}
	if (!enter_call(&thread->poll, ctx, seen.cookie, seen.library, bpf_ktime_get_ns(), true))
		return;
	if (abandoned)
		leave_inside(before);
	__sync_fetch_and_add(&function->inside, 1);
	thread->site_hits = 0;
	thread->site_digest = 0;
	thread->poll.function = COOKIE_INDEX(cookie);
	thread->poll.object = ARG1(ctx);
	thread->poll.list = ARG3(ctx);
	thread->poll.count = ARG2(ctx);
}

enum direction {
	DIRECTION_SEND,
	DIRECTION_RECEIVE,
	DIRECTION_UNKNOWN,
};

/* A failed completion does not say whether it is of a send or a receive: its
 * opcode is not written (ibv_poll_cq(3)). The CQ may tell, or that there is
 * nothing of the one kind outstanding. */
static __noinline enum direction direction_of_failure(struct queue *queue,
						      struct delivery *delivery)
{
	if (delivery->queue_told != TOLD_NOT)
		return delivery->queue_told == TOLD_RECEIVE ? DIRECTION_RECEIVE : DIRECTION_SEND;
	if (queue->send_cq != queue->recv_cq)
		return delivery->cq_address == queue->recv_cq ? DIRECTION_RECEIVE : DIRECTION_SEND;

	bool receives_due = queue->srq || !queue->recv_known ||
			    queue->recv_posted > queue->recv_completed;
	bool send_due = may_be_outstanding(queue, delivery->wc.wr_id, &delivery->steps);

	if (send_due)
		return receives_due && !names_one_request(delivery->wc.wr_id) ? DIRECTION_UNKNOWN
									      : DIRECTION_SEND;
	return receives_due ? DIRECTION_RECEIVE : DIRECTION_SEND;
}

static __always_inline void deliver_failure(struct queue *queue, __u32 slot, struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;

	switch (direction_of_failure(queue, delivery)) {
	case DIRECTION_RECEIVE:
		deliver_receive(queue, queue->device, thread);
		break;
	case DIRECTION_SEND:
		deliver_send(slot, thread);
		break;
	case DIRECTION_UNKNOWN:
		/* Which entry it was of stays open, and so what the next ones retire. */
		count_unmatched(delivery, queue->device, COMPLETIONS_AMBIGUOUS);
		lose_sync(queue);
		break;
	}
}

static __always_inline bool is_receive(__u32 opcode)
{
	return (opcode & IBV_WC_RECV) && opcode < IBV_WC_DRIVER1;
}

/* A completion of a queue of which nothing was posted under our eyes. */
static __noinline void deliver_stranger(struct queue_key *key, struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;
	__u32 device = device_of_context(key->object);
	if (is_ignored_device(device) || !admit_process(&delivery->caller))
		return;
	count(COMPLETIONS_SEEN);
	bool untracked = bpf_map_lookup_elem(&untracked_queues, key) != NULL;

	if (delivery->wc.status == IBV_WC_SUCCESS && is_receive(delivery->wc.opcode))
		deliver_receive(NULL, device, thread);
	else
		count_unmatched(delivery, device,
				untracked ? COMPLETIONS_UNMATCHED : COMPLETIONS_BEFORE_ATTACH);
}

/* Delivers what thread->delivery holds to its queue. */
static __always_inline void deliver_to(struct queue *queue, __u32 slot, struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;

	if (is_ignored_device(queue->device))
		return;
	count(COMPLETIONS_SEEN);
	if (delivery->wc.status != IBV_WC_SUCCESS)
		deliver_failure(queue, slot, thread);
	else if (is_receive(delivery->wc.opcode))
		deliver_receive(queue, queue->device, thread);
	else
		deliver_send(slot, thread);
}

static __always_inline void deliver(struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;
	struct queue_key key = queue_key_of(&delivery->caller, delivery->cq_context,
					    delivery->wc.qp_num & 0xffffff);
	__u32 slot;
	struct queue *queue = recent_queue(thread, &key, &slot);

	if (queue)
		deliver_to(queue, slot, thread);
	else
		deliver_stranger(&key, thread);
}

/* By way of the stack, see post_entered; of a frame that is gone again when the
 * completion is delivered. */
static __noinline bool read_completion(struct thread *thread, __u64 address)
{
	struct ibv_wc wc;

	if (bpf_probe_read_user(&wc, sizeof(wc), (void *)address))
		return false;
	thread->delivery.wc = wc;
	return true;
}

struct batch {
	struct thread *thread;
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
	if (!read_completion(state->thread, address)) {
		state->unread++;
		return NEXT;
	}
	deliver(state->thread);
	return NEXT;
}

/* Completions went by unseen: no queue of the process is certain any more. */
static __always_inline void lose_completions(struct caller *caller, __u32 reason, __u32 n)
{
	count_n(reason, n);
	note_loss(caller);
}

static __always_inline void deliver_batch(struct thread *thread, struct cq *cq, __u32 n)
{
	struct delivery *delivery = &thread->delivery;
	struct batch batch = {
		.thread = thread,
		.wc = thread->poll.list,
		.unread = some_zero,
		.left = n > BATCH_MAX ? BATCH_MAX : n,
	};

	delivery->cq_address = thread->poll.object;
	delivery->unordered = !cq || cq->shared;
	/* Another thread's poll that began during this one says nothing of what
	 * this one found, and one that was seen before polls went by unseen not
	 * when the thread looked last. */
	struct poll_function *function = function_at(thread->poll.function);
	__u64 short_poll_ns =
		cq && function && cq->short_poll_ns >= function->since_ns ? cq->short_poll_ns : 0;
	delivery->short_poll_ns = short_poll_ns < thread->poll.entry_ns ? short_poll_ns
									: thread->poll.entry_ns;
	delivery->evidence_ns = ~0ULL;
	delivery->has_elsewhere = 0;
	delivery->steps = SEARCH_STEPS;
	delivery->now = bpf_ktime_get_ns();
	LOOP(deliver_completion, &batch);
	if (batch.unread)
		lose_completions(&delivery->caller, LOSS_READ_WC, batch.unread);
	if (n > BATCH_MAX)
		lose_completions(&delivery->caller, LOSS_BATCH_TOO_DEEP, n - BATCH_MAX);
}

/* The fields of a completion in one number, such that their order counts. */
static __always_inline __u64 digest_completion(__u64 digest, const struct ibv_wc *wc)
{
	digest = digest * 0x100000001b3 + wc->wr_id;
	digest = digest * 0x100000001b3 + ((__u64)wc->status << 32 | wc->opcode);
	digest = digest * 0x100000001b3 + ((__u64)wc->vendor_err << 32 | wc->byte_len);
	return digest * 0x100000001b3 + wc->qp_num;
}

struct digesting {
	struct ibv_wc *scratch;
	__u64 wc;
	__u64 digest;
	__u32 left;
};

LOOP_BODY(digest_delivered, struct digesting)
{
	if (state->left == 0)
		return STOP;
	state->left--;
	if (bpf_probe_read_user(state->scratch, sizeof(struct ibv_wc), (void *)state->wc))
		return STOP;
	state->digest = digest_completion(state->digest, state->scratch);
	state->wc += sizeof(struct ibv_wc);
	return NEXT;
}

/* Compares what the completion sites saw of a call with what it returned. */
static __noinline void compare_sites(struct thread *thread, int result)
{
	__u32 index = thread->poll.function;
	struct poll_function *function = function_at(index);

	/* A call that fails may have taken completions off the queue that its
	 * caller never sees. */
	if (!function || !function->compares || result < 0)
		return;
	if (thread->site_hits != (__u32)result) {
		__sync_fetch_and_add(&function->wrong_count, 1);
		return;
	}
	if (result == 0) {
		__sync_fetch_and_add(&function->empty_polls, 1);
		return;
	}
	struct digesting digesting = {
		.scratch = &thread->delivery.wc,
		.wc = thread->poll.list,
		.digest = some_zero,
		.left = result,
	};
	LOOP(digest_delivered, &digesting);
	if (digesting.digest != thread->site_digest)
		__sync_fetch_and_add(&function->wrong_content, 1);
	else
		__sync_fetch_and_add(&function->completions, result);
}

/* Whether completion sites deliver what entry and return do not. */
static __always_inline bool has_sites(__u32 index)
{
	struct poll_function *function = function_at(index);

	return function && (function->compares || !function->returns);
}

static __always_inline void poll_returned(int result, __u64 cookie)
{
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_RETURN);
	struct thread *thread = seen.thread;

	if (!seen.library)
		return;
	struct caller caller = caller_of(seen.task);
	struct call *call = &thread->poll;
	__u32 n = result > 0 ? result : 0;
	bool delivers = return_delivers(call);
	enum left left = leave_call(call, seen.cookie);
	if (left == LEFT_DUPLICATE) {
		count_n(COMPLETIONS_SEEN, n);
		count_n(COMPLETIONS_DUPLICATE, n);
		return;
	}
	if (left == LEFT_UNKNOWN || !delivers) {
		if (has_sites(COOKIE_INDEX(cookie)))
			return;
		count(LOSS_RETURN_WITHOUT_ENTRY);
		if (result)
			note_loss(&caller);
		return;
	}
	leave_inside(call->function);
	compare_sites(thread, result);
	if (n > call->count)
		n = call->count;

	struct delivery *delivery = &thread->delivery;
	delivery->caller = caller;
	if (is_excluded(&delivery->caller))
		return;
	if (result < 0) {
		/* It may have taken completions off the queue and dropped them,
		 * as libmlx5 does when one is of a QP that is gone. */
		lose_completions(&caller, LOSS_FAILED_POLL, 1);
		return;
	}
	struct cq *cq = cq_of(&delivery->caller, call->object);
	if (cq)
		note_poller(cq, caller.tid, call->entry_ns);
	if (n) {
		if (bpf_probe_read_user(&delivery->cq_context, sizeof(delivery->cq_context),
					(void *)(call->object + IBV_CQ_CONTEXT))) {
			lose_completions(&caller, LOSS_READ_CQ, n);
			return;
		}
		deliver_batch(thread, cq, n);
	}
	if (cq && n < call->count && call->entry_ns > cq->short_poll_ns)
		cq->short_poll_ns = call->entry_ns;
}
