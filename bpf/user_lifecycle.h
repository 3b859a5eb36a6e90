/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "lifecycle.h"

/* The control path of a QP, as far as libibverbs shows it. */

static __always_inline struct queue *queue_at_address(__u64 qp_address, struct queue_key *key, __u32 *slot,
						      struct ibv_qp_head *qp, struct caller *caller)
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

static __always_inline void modify_entered(__u64 qp_address, __u64 attr, __u32 mask)
{
	struct caller caller = current_caller();
	struct ibv_qp_head qp;
	struct queue_key key = {};
	__u32 slot = 0;
	struct queue *queue = queue_at_address(qp_address, &key, &slot, &qp, &caller);
	__u32 state = mask & IBV_QP_MASK_STATE ? read_u32(attr + IBV_QP_ATTR_STATE) : ~0u;

	queue = ask_for_state(&key, queue, &qp, &caller, state);
	if (queue)
		learn_attributes(queue, attr, mask);
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
