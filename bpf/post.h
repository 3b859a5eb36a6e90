/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "cq.h"
#include "observe.h"
#include "refuse.h"

static __always_inline void learn_qp(struct queue *queue, struct ibv_qp_head *qp)
{
	queue->send_cq = qp->send_cq;
	queue->recv_cq = qp->recv_cq;
	queue->srq = qp->srq;
	queue->qp_type = qp->qp_type;
}

/* Aligns a queue on which everything has visibly come to rest. */
static __always_inline void align_after_drain(struct queue *queue, struct caller *caller, __u64 now)
{
	struct cq_key key = cq_key_of(caller, queue->send_cq);

	/* A queue of which no send was ever seen to complete was not seen to
	 * drain either. */
	if (queue->sync != QUEUE_UNSYNCED || now - queue->activity_ns < DRAIN_NS ||
	    !queue->completions)
		return;
	if (has_signaled(queue))
		return;
	struct cq *cq = bpf_map_lookup_elem(&cqs, &key);
	if (cq && cq->short_poll_ns > queue->activity_ns + DRAIN_NS)
		queue->sync = QUEUE_SYNCED;
}

static __always_inline void count_untracked(__u32 n)
{
	count_n(WQES_POSTED_UNTRACKED, n);
	count_n(LOST_UNTRACKED, n);
}

static __always_inline struct queue *queue_of_qp(struct thread *thread, struct caller *caller,
						 struct ibv_qp_head *qp, __u32 *slot)
{
	struct queue_key key = queue_key_of(caller, qp->context, qp->qp_num);
	struct queue *queue = recent_queue(thread, &key, slot);

	if (!queue)
		queue = create_queue(&key, caller, qp->context, slot);
	if (queue && !queue->send_cq)
		learn_qp(queue, qp);
	return queue;
}

/* Reads the list that a post hands over, and its first request. */
static __always_inline struct chain read_chain(__u64 wr, struct ibv_send_wr_head *first)
{
	if (!read_send_wr(first, wr))
		return unreadable_chain(wr);
	return measure_chain(first->next);
}

/* Follows a post on a queue. */
static __always_inline void follow_post(struct queue *queue, __u32 slot, struct observed *seen,
					struct chain *chain, struct ibv_send_wr_head *first)
{
	struct thread *thread = seen->thread;
	struct call *call = &thread->post;

	if (queue->library != call->cookie)
		queue->library = call->cookie;
	if (queue->sync == QUEUE_NEW)
		decide_first_sync(queue, seen->library);
	follow_losses(queue, &thread->caller);
	align_after_drain(queue, &thread->caller, call->entry_ns);

	call->slot = slot;
	call->generation = queue->generation;
	if (chain->unreadable) {
		call->unread = chain->wr;
		note_undecided(queue, call->entry_ns);
	}
	record_chain(queue, call, chain, thread->caller.tid, first);
	queue->activity_ns = call->entry_ns;
}

static __always_inline void post_entered(struct pt_regs *ctx, __u32 cookie)
{
	/* What is read from the process goes to the stack: elsewhere the kernel
	 * checks at length what the destination is. */
	struct ibv_qp_head qp;
	struct ibv_send_wr_head first;
	__u64 now = bpf_ktime_get_ns();
	struct observed seen = observe(cookie, HIT_ENTRY);
	struct thread *thread = seen.thread;

	if (!seen.library)
		return;
	struct call *call = &thread->post;
	if (is_followed(call, ctx, cookie, now)) {
		count_duplicate(seen.library, call->cookie);
		return;
	}
	if (call->unread || call->refused)
		settle_call(call);
	begin_call(call, ctx, cookie, seen.library, now, has_returns(seen.library, POST_SEND));
	thread->caller = caller_of(seen.task);
	call->object = ARG1(ctx);
	call->list = ARG2(ctx);
	call->bad = ARG3(ctx);
	call->count = 0;
	call->slot = NO_SLOT;
	if (!read_qp(&qp, call->object)) {
		count(LOSS_READ_QP);
		note_loss(&thread->caller);
		return;
	}

	__u32 slot = 0;
	struct queue *queue = queue_of_qp(thread, &thread->caller, &qp, &slot);
	struct chain chain = read_chain(call->list, &first);
	if (!queue) {
		if (!is_excluded(&thread->caller) &&
		    !is_ignored_device(device_of_context(qp.context)))
			count_untracked(chain.count);
		return;
	}
	if (!is_ignored_device(queue->device))
		follow_post(queue, slot, &seen, &chain, &first);
	charge_work(thread, now);
}

struct returning {
	struct queue *queue;
	__u64 sequence;
	__u32 left;
	__u32 duration;
};

LOOP_BODY(stamp_return, struct returning)
{
	if (state->left == 0)
		return STOP;
	__u64 sequence = state->sequence;
	state->left--;
	state->sequence++;

	struct place place = place_of(state->queue, sequence);
	if (place.kind == PLACE_ENTRY) {
		__u64 tag = returned_tag(state->queue, sequence);
		__sync_val_compare_and_swap(&place.entry->returned, tag, tag | state->duration);
	}
	return NEXT;
}

static __always_inline void stamp_entries(struct queue *queue, struct call *call)
{
	__u64 duration = bpf_ktime_get_ns() - call->entry_ns;
	struct returning stamp = {
		.queue = queue,
		.sequence = call->first,
		.left = call->count,
		.duration = duration > RETURNED_NS ? RETURNED_NS
			    : duration		   ? duration
						   : 1,
	};

	LOOP(stamp_return, &stamp);
}

/* A post failed. Where sites are known it passed one of them, or they do not tell
 * of every failure. */
static __always_inline void post_failed(struct queue *queue, struct call *call,
					struct library *library, int result)
{
	count_rejected(queue, result);
	if (call->refused)
		return;
	note_unmarked(library, POST_SEND);
	__u64 bad = read_bad_wr(call->bad);
	if (call->count)
		undo_from_bad(queue, call, bad);
	decide_unread(queue, call, bad != call->unread);
}

static __always_inline void post_returned(int result, __u32 cookie)
{
	struct observed seen = observe(cookie, HIT_RETURN);

	if (!seen.library)
		return;
	struct call *call = &seen.thread->post;
	/* It was entered before its return was to be probed. */
	if (call->active && call->cookie == cookie && !call->returns)
		return;
	enum left left = leave_call(call, cookie);
	if (left == LEFT_UNKNOWN) {
		struct caller caller = caller_of(seen.task);

		count(LOSS_RETURN_WITHOUT_ENTRY);
		note_loss(&caller);
	}
	struct queue *queue = queue_of_call(call);
	if (left != LEFT || !queue)
		return;
	stamp_entries(queue, call);
	if (result != 0)
		post_failed(queue, call, seen.library, result);
	else
		decide_unread(queue, call, true);
	call->refused = 0;
}
