/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kverbs_call.h"
#include "kverbs_caller.h"
#include "poll.h"

/* Completions that a driver's poll_cq hands to a consumer in the kernel, read on
 * its return. */

static __always_inline void kernel_poll_entered(const struct kernel_hit *hit)
{
	if (!attached_since(hit->cookie) || !is_consumers_cq(hit->object))
		return;
	struct scratch *scratch = take_scratch();
	if (!scratch)
		return;
	fill_call(&scratch->thread.poll, hit, bpf_ktime_get_ns());
	keep_kernel_call(hit, &scratch->thread.poll);
	give_back_scratch(scratch);
}

/* Reads a completion into thread->delivery, and returns its QP; 0 when it cannot
 * be read. */
static __always_inline __u64 read_kernel_completion(struct thread *thread, __u64 address)
{
	struct ib_wc *wc = (void *)address;
	struct ibv_wc *into = &thread->delivery.wc;
	struct ib_qp *qp = NULL;

	if (bpf_core_read(&qp, sizeof(qp), &wc->qp) || !qp)
		return 0;
	into->wr_id = BPF_CORE_READ(wc, wr_id);
	into->status = BPF_CORE_READ(wc, status);
	into->opcode = BPF_CORE_READ(wc, opcode);
	into->vendor_err = BPF_CORE_READ(wc, vendor_err);
	into->byte_len = BPF_CORE_READ(wc, byte_len);
	into->qp_num = BPF_CORE_READ(qp, qp_num);
	return (__u64)qp;
}

struct kernel_batch {
	struct thread *thread;
	__u64 wc;
	__u32 left;
	__u32 unread;
};

LOOP_BODY(deliver_kernel_completion, struct kernel_batch)
{
	struct thread *thread = state->thread;

	if (state->left == 0)
		return STOP;
	state->left--;
	__u64 qp = read_kernel_completion(thread, state->wc);
	state->wc += bpf_core_type_size(struct ib_wc);
	if (!qp) {
		state->unread++;
		return NEXT;
	}
	if (!is_consumers_qp(qp))
		return NEXT;
	thread->delivery.caller.tgid = KERNEL_TGID |
				       consumer_of((__u64)BPF_CORE_READ((struct ib_qp *)qp, pd));
	thread->delivery.cq_context = (__u64)BPF_CORE_READ((struct ib_qp *)qp, device);
	if (!is_excluded(&thread->delivery.caller))
		deliver(thread);
	return NEXT;
}

/* What is known of a CQ. Not inlined, for a stack of its own. */
static __noinline struct cq *kernel_cq(__u64 identity)
{
	struct caller anyone = { .incarnation = KERNEL_INCARNATION, .tgid = KERNEL_TGID };

	return cq_of(&anyone, identity);
}

static __always_inline void lose_kernel_completions(__u32 reason, __u32 n)
{
	count_n(reason, n);
	note_common_loss();
}

/* An interrupt says that there is something to poll on a CQ (the tracepoint
 * rdma_core:cq_schedule, of CQs that the RDMA core polls). */
static __always_inline void poll_scheduled(__u64 address)
{
	struct cq *cq = kernel_cq(cq_identity((struct ib_cq *)address));

	if (cq)
		cq->scheduled_ns = bpf_ktime_get_ns();
}

/* Since when a completion may have waited for its poll: since the interrupt that
 * asked for it. A poll that came back short before says nothing: its CQ is not
 * looked at again until there is an interrupt, and nobody is late. What was posted
 * after the interrupt may have completed at any moment since. */
static __always_inline __u64 waiting_since(struct cq *cq)
{
	return cq && cq->scheduled_ns > cq->short_poll_ns ? cq->scheduled_ns : 0;
}

static __always_inline void deliver_kernel_batch(struct thread *thread, struct cq *cq, __u32 n)
{
	struct delivery *delivery = &thread->delivery;
	struct kernel_batch batch = {
		.thread = thread,
		.wc = thread->poll.list,
		.unread = some_zero,
		.left = n > BATCH_MAX ? BATCH_MAX : n,
	};

	/* A CQ has one poller at a time: the RDMA core sees to it for those that it
	 * polls, and others keep the order of their completions. */
	delivery->unordered = 0;
	delivery->queue_told = TOLD_NOT;
	delivery->short_poll_ns = waiting_since(cq);
	delivery->evidence_ns = delivery->short_poll_ns;
	delivery->steps = SEARCH_STEPS;
	delivery->now = bpf_ktime_get_ns();
	LOOP(deliver_kernel_completion, &batch);
	if (batch.unread)
		lose_kernel_completions(LOSS_READ_WC, batch.unread);
	if (n > BATCH_MAX)
		lose_kernel_completions(LOSS_BATCH_TOO_DEEP, n - BATCH_MAX);
}

/* The call in thread->poll returned. entry_ns is 0 where it is not known. */
static __always_inline void finish_kernel_poll(struct thread *thread, const struct kernel_hit *hit)
{
	struct call *call = &thread->poll;
	struct delivery *delivery = &thread->delivery;
	__u32 n = hit->result > 0 ? hit->result : 0;

	if (hit->result < 0) {
		lose_kernel_completions(LOSS_FAILED_POLL, 1);
		return;
	}
	if (n > call->count)
		n = call->count;
	delivery->caller = consumer_caller(0, hit->frame);
	delivery->cq_address = cq_identity((struct ib_cq *)call->object);
	struct cq *cq = kernel_cq(delivery->cq_address);
	if (n)
		deliver_kernel_batch(thread, cq, n);
	if (cq && n < call->count && call->entry_ns > cq->short_poll_ns)
		cq->short_poll_ns = call->entry_ns;
}

static __always_inline void kernel_poll_returned(const struct kernel_hit *hit)
{
	if (!attached_since(hit->cookie))
		return;
	if (hit->has_arguments && !is_consumers_cq(hit->object))
		return;
	struct scratch *scratch = take_scratch();
	if (!scratch)
		return;
	struct thread *thread = &scratch->thread;
	enum kernel_return found = find_kernel_call(hit, &thread->poll);
	if (found != RETURN_NOT_OURS) {
		if (found == RETURN_ALONE) {
			fill_call(&thread->poll, hit, bpf_ktime_get_ns());
			mark_followed(hit, &thread->poll);
			thread->poll.entry_ns = 0;
		}
		/* poll_cq(cq, num_entries, wc) */
		thread->poll.count = thread->poll.list;
		thread->poll.list = thread->poll.bad;
		finish_kernel_poll(thread, hit);
		if (hit->program == EXIT_SECOND)
			__sync_fetch_and_add(&made_up, 1);
	}
	give_back_scratch(scratch);
}
