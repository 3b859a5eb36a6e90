/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kverbs_call.h"
#include "kverbs_caller.h"
#include "receive.h"

/* Receives that consumers in the kernel post: counted, never timed. */

static __always_inline bool is_consumers_receive(const struct kernel_hit *hit)
{
	if (!hit->list)
		return false;
	return hit->kind == CALL_POST_SHARED_RECEIVE ? is_consumers_srq(hit->object)
						     : is_consumers_qp(hit->object);
}

static __always_inline __u64 pd_of_receive(const struct kernel_hit *hit)
{
	__u64 object = hit->object;

	if (hit->kind == CALL_POST_SHARED_RECEIVE)
		return (__u64)BPF_CORE_READ((struct ib_srq *)object, pd);
	return (__u64)BPF_CORE_READ((struct ib_qp *)object, pd);
}

/* Counts what the call posts, in thread->receive. */
static __always_inline void follow_kernel_receive(struct thread *thread,
						  const struct kernel_hit *hit)
{
	struct call *call = &thread->receive;

	fill_call(call, hit, bpf_ktime_get_ns());
	thread->caller = consumer_caller(consumer_of(pd_of_receive(hit)), hit->frame);
	follow_receive(thread, call, hit->kind == CALL_POST_SHARED_RECEIVE);
}

static __always_inline void kernel_receive_entered(const struct kernel_hit *hit)
{
	if (!attached_since(hit->cookie) || !is_consumers_receive(hit))
		return;
	struct scratch *scratch = take_scratch();
	if (!scratch)
		return;
	follow_kernel_receive(&scratch->thread, hit);
	keep_kernel_call(hit, &scratch->thread.receive);
	give_back_scratch(scratch);
}

static __always_inline void kernel_receive_returned(const struct kernel_hit *hit)
{
	if (!attached_since(hit->cookie))
		return;
	if (hit->has_arguments && !is_consumers_receive(hit))
		return;
	struct scratch *scratch = take_scratch();
	if (!scratch)
		return;
	struct thread *thread = &scratch->thread;
	enum kernel_return found = find_kernel_call(hit, &thread->receive);
	if (found == RETURN_ALONE) {
		follow_kernel_receive(thread, hit);
		count(LOSS_ENTRY_NOT_SEEN);
	}
	struct queue *queue = found != RETURN_NOT_OURS ? queue_of_call(&thread->receive) : NULL;
	if (queue && hit->result != 0)
		take_back(queue, &thread->receive, read_bad_wr(thread->receive.bad));
	give_back_scratch(scratch);
}
