/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kverbs_call.h"
#include "kverbs_caller.h"
#include "post.h"

/* Posts of consumers in the kernel, on the same queues as those of processes. */

/* Makes entries of the chain that thread->post holds. Not static: the verifier then
 * checks it once, whatever it knows of the callers' state. */
__noinline int record_kernel_post(__u32 slot, struct thread *thread)
{
	struct queue *queue = queue_at(slot);
	struct ibv_send_wr_head first;

	if (!queue || !thread)
		return 0;
	struct observed seen = {
		.thread = thread,
		.library = library_at(thread->post.cookie),
		.cookie = thread->post.cookie,
	};
	if (!seen.library)
		return 0;
	struct chain chain = read_chain(thread->post.list, &first);
	follow_post(queue, slot, &seen, &chain, &first);
	return 0;
}

static __noinline __u32 count_chain(__u64 wr)
{
	struct ibv_send_wr_head first;

	return read_chain(wr, &first).count;
}

/* The slot of the queue of the post that thread->post holds; NO_SLOT when it is not
 * followed. Not static, and apart from the recording, for a stack of its own. */
__noinline __u32 find_kernel_queue(struct thread *thread, __u64 frame)
{
	struct ibv_qp_head qp;
	__u32 slot = 0;

	if (!thread)
		return NO_SLOT;
	if (!read_qp(&qp, thread->post.object)) {
		count(LOSS_READ_QP);
		note_common_loss();
		return NO_SLOT;
	}
	thread->caller = consumer_caller(consumer_of(qp.pd), frame);
	struct queue *queue = queue_of_qp(thread, &thread->caller, &qp, &slot);
	if (queue)
		return is_ignored_device(queue->device) ? NO_SLOT : slot;
	if (!is_excluded(&thread->caller) && !is_ignored_device(device_of_context(qp.context)))
		count_untracked(count_chain(thread->post.list));
	return NO_SLOT;
}

/* Follows the post that thread->post holds. */
static __always_inline void follow_kernel_post(struct thread *thread, __u64 frame)
{
	__u32 slot = find_kernel_queue(thread, frame);

	if (slot != NO_SLOT)
		record_kernel_post(slot, thread);
}

static __always_inline void kernel_post_entered(const struct kernel_hit *hit)
{
	/* A doorbell of a process comes without a request. */
	if (!attached_since(hit->cookie) || !hit->list || !is_consumers_qp(hit->object))
		return;
	struct scratch *scratch = take_scratch();
	if (!scratch)
		return;
	fill_call(&scratch->thread.post, hit, bpf_ktime_get_ns());
	follow_kernel_post(&scratch->thread, hit->frame);
	keep_kernel_call(hit, &scratch->thread.post);
	give_back_scratch(scratch);
}

/* A post whose entry was skipped. What it took is known before the caller goes
 * on, but not since when: its requests are counted and never timed. A completion
 * that was faster found nothing. */
static __always_inline void post_made_up(struct thread *thread, const struct kernel_hit *hit)
{
	fill_call(&thread->post, hit, bpf_ktime_get_ns());
	thread->post.untimed = 1;
	follow_kernel_post(thread, hit->frame);
	mark_followed(hit, &thread->post);
	count(LOSS_ENTRY_NOT_SEEN);
}

static __always_inline void finish_kernel_post(struct thread *thread, const struct kernel_hit *hit)
{
	struct call *call = &thread->post;
	struct queue *queue = queue_of_call(call);

	if (!queue)
		return;
	if (!call->untimed)
		stamp_entries(queue, call);
	if (hit->result != 0)
		post_failed(queue, call, library_at(call->cookie), hit->result);
	else
		decide_unread(queue, call, true);
}

static __always_inline void kernel_post_returned(const struct kernel_hit *hit)
{
	if (!attached_since(hit->cookie))
		return;
	if (hit->has_arguments && (!hit->list || !is_consumers_qp(hit->object)))
		return;
	struct scratch *scratch = take_scratch();
	if (!scratch)
		return;
	enum kernel_return found = find_kernel_call(hit, &scratch->thread.post);
	if (found != RETURN_NOT_OURS) {
		if (found == RETURN_ALONE)
			post_made_up(&scratch->thread, hit);
		finish_kernel_post(&scratch->thread, hit);
		if (hit->program == EXIT_SECOND)
			__sync_fetch_and_add(&made_up, 1);
	}
	give_back_scratch(scratch);
}
