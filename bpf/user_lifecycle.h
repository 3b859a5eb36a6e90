/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "lifecycle.h"

/* The control path of a QP, as far as libibverbs shows it. */

static __always_inline struct queue *queue_at_address(__u64 qp_address, struct queue_key *key,
						      __u32 *slot, struct ibv_qp_head *qp,
						      struct caller *caller)
{
	if (!read_qp(qp, qp_address)) {
		count(LOSS_READ_QP);
		return NULL;
	}
	*key = queue_key_of(caller, qp->context, qp->qp_num);
	return find_queue(key, slot);
}

static __always_inline __u32 read_u32(__u64 address)
{
	__u32 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

static __always_inline void learn_attributes(struct queue *queue, __u64 attr, __u32 mask)
{
	if (mask & IBV_QP_MASK_PORT) {
		__u8 port = 0;

		bpf_probe_read_user(&port, sizeof(port), (void *)(attr + IBV_QP_ATTR_PORT));
		queue->port = port;
	}
	if (mask & IBV_QP_MASK_DEST_QPN)
		queue->remote_qp = read_u32(attr + IBV_QP_ATTR_DEST_QP) & 0xffffff;
}

/* The call may be refused, as every one that asks for a state that cannot follow
 * the present one: nothing is done before it returns. */
static __always_inline void modify_entered(__u64 qp_address, __u64 attr, __u32 mask)
{
	struct thread *thread = this_thread();
	struct ibv_qp_head qp;

	if (!thread)
		return;
	thread->modify_qp = 0;
	if (!read_qp(&qp, qp_address)) {
		count(LOSS_READ_QP);
		return;
	}
	thread->modify_qp = qp_address;
	thread->modify_attr = attr;
	thread->modify_mask = mask;
	thread->modify_state = qp.state;
}

static __always_inline void modified(struct thread *thread)
{
	struct caller caller = current_caller();
	struct ibv_qp_head qp;
	struct queue_key key = {};
	__u32 slot = 0;
	__u32 mask = thread->modify_mask;
	struct queue *queue = queue_at_address(thread->modify_qp, &key, &slot, &qp, &caller);
	__u32 state = mask & IBV_QP_MASK_STATE ? read_u32(thread->modify_attr + IBV_QP_ATTR_STATE)
					       : ~0u;

	queue = reach_state(&key, queue, &qp, &caller, thread->modify_state, state);
	if (queue)
		learn_attributes(queue, thread->modify_attr, mask);
}

static __always_inline void destroy_entered(__u64 qp_address)
{
	struct caller caller = current_caller();
	struct ibv_qp_head qp;
	struct queue_key key = {};
	__u32 slot;
	struct queue *queue = queue_at_address(qp_address, &key, &slot, &qp, &caller);

	if (queue)
		end_queue(&key, queue, END_DESTROY);
	else
		bpf_map_delete_elem(&untracked_queues, &key);
}

/* The next SRQ may have the address. */
static __always_inline void srq_destroy_entered(__u64 srq)
{
	struct caller caller = current_caller();
	struct queue_key key = queue_key_of(&caller, srq, SRQ_NUMBER);
	__u32 slot;
	struct queue *queue = find_queue(&key, &slot);

	if (queue)
		end_queue(&key, queue, END_DESTROY);
	else
		bpf_map_delete_elem(&untracked_queues, &key);
}

static __noinline void created(__u64 qp_address, __u64 attr)
{
	struct caller caller = current_caller();
	struct ibv_qp_head qp = {};
	struct queue_key key = {};
	__u32 slot = 0;
	struct queue *queue = queue_at_address(qp_address, &key, &slot, &qp, &caller);

	if (!qp.qp_num)
		return;
	queue = begin_queue(&key, queue, &qp, &caller);
	if (!queue)
		return;
	queue->qp_type = read_u32(attr + IBV_QP_INIT_TYPE);
	queue->limit = read_u32(attr + IBV_QP_INIT_MAX_SEND_WR);
	queue->sig_all = read_u32(attr + IBV_QP_INIT_SIG_ALL) != 0;
}
