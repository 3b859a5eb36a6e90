/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kverbs_call.h"
#include "kverbs_caller.h"
#include "lifecycle.h"
#include "maps/driver_functions.h"

/* The control path of consumers in the kernel: queues that were seen from their
 * start are synced. */

static __always_inline struct queue *kernel_queue(__u64 address, __u64 frame, struct queue_key *key,
						  struct ibv_qp_head *qp, struct caller *caller)
{
	__u32 slot = 0;

	if (!read_qp(qp, address)) {
		count(LOSS_READ_QP);
		return NULL;
	}
	*caller = consumer_caller(consumer_of(qp->pd), frame);
	*key = queue_key_of(caller, qp->context, qp->qp_num);
	return find_queue(key, &slot);
}

/* int ib_modify_qp(qp, attributes, mask) */
static __always_inline void kernel_qp_modified(__u64 address, __u64 attributes, __u32 mask,
					       __u64 frame)
{
	struct ib_qp_attr *attr = (void *)attributes;
	struct ibv_qp_head qp = {};
	struct queue_key key = {};
	struct caller caller;

	if (!is_consumers_qp(address))
		return;
	struct queue *queue = kernel_queue(address, frame, &key, &qp, &caller);
	__u32 state = mask & IB_QP_STATE ? BPF_CORE_READ(attr, qp_state) : ~0u;
	if (!qp.qp_num)
		return;
	queue = reach_state(&key, queue, &qp, &caller, qp.state, state);
	if (!queue)
		return;
	if (mask & IB_QP_PORT)
		queue->port = BPF_CORE_READ((struct ib_qp *)address, port);
	if (mask & IB_QP_DEST_QPN)
		queue->remote_qp = BPF_CORE_READ(attr, dest_qp_num) & 0xffffff;
}

/* struct ib_qp *ib_create_qp_kernel(pd, attributes, …): the attributes are its
 * caller's and outlive the call. */
static __always_inline void kernel_qp_creating(__u64 attributes, __u64 frame)
{
	struct call call = { .object = attributes,
			     .entry_ns = bpf_ktime_get_ns(),
			     .active = CALL_ENTERED };

	bpf_map_update_elem(&kernel_calls, &frame, &call, BPF_ANY);
}

static __always_inline void kernel_qp_created(__u64 address, __u64 frame)
{
	struct call *call = bpf_map_lookup_elem(&kernel_calls, &frame);
	struct ibv_qp_head qp = {};
	struct queue_key key = {};
	struct caller caller;

	if (!call)
		return;
	struct ib_qp_init_attr *attr = (void *)call->object;
	bpf_map_delete_elem(&kernel_calls, &frame);
	/* An error is a pointer into the last page. */
	if (address >= -4095ULL || !is_consumers_qp(address))
		return;
	struct queue *queue = kernel_queue(address, frame, &key, &qp, &caller);
	if (!qp.qp_num)
		return;
	queue = begin_queue(&key, queue, &qp, &caller);
	if (!queue)
		return;
	queue->limit = BPF_CORE_READ(attr, cap.max_send_wr);
	queue->sig_all = BPF_CORE_READ(attr, sq_sig_type) == IB_SIGNAL_ALL_WR;
}

/* int ib_destroy_qp_user(qp, …), which destroys those of the kernel too. */
static __always_inline void kernel_qp_destroyed(__u64 address, __u64 frame)
{
	struct ibv_qp_head qp = {};
	struct queue_key key = {};
	struct caller caller;

	if (!is_consumers_qp(address))
		return;
	struct queue *queue = kernel_queue(address, frame, &key, &qp, &caller);
	if (queue)
		end_queue(&key, queue, END_DESTROY);
	else
		bpf_map_delete_elem(&untracked_queues, &key);
}

/* int ib_query_port(device, …): reading the state of a port in sysfs leads here,
 * and so to the functions of every driver. */
static __always_inline void note_driver(__u64 address)
{
	struct ib_device *device = (void *)address;
	struct driver_verbs functions = {
		.post_send = (__u64)BPF_CORE_READ(device, ops.post_send),
		.post_recv = (__u64)BPF_CORE_READ(device, ops.post_recv),
		.post_srq_recv = (__u64)BPF_CORE_READ(device, ops.post_srq_recv),
		.poll_cq = (__u64)BPF_CORE_READ(device, ops.poll_cq),
	};

	if (functions.poll_cq)
		bpf_map_update_elem(&driver_functions, &functions.poll_cq, &functions, BPF_ANY);
}
