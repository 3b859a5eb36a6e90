/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "libbpf/bpf_core_read.h"
#include "library_find.h"
#include "maps/connected_qps.h"
#include "process.h"
#include "queue_end.h"
#include "queue_find.h"
#include "rdma_core.h"
#include "resource_handle.h"
#include "resource_types.h"

/* What the kernel tells of queues of programs that have libibverbs linked in. Where
 * it is a library of its own, its functions are probed and tell. */

/* QPs whose state changed and of which it is not known which queue they are, read by
 * user space. */
volatile __u64 connections_unread = 0;

/* The key of a QP of the current process; false for one of the kernel or of a process
 * that is not traced, and, counted, where its memory cannot be read. */
static __always_inline bool tracked_key(struct queue_key *key, struct ib_qp *qp)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 handle = user_handle_of(BPF_CORE_READ(qp, uobject));

	if (!handle)
		return false;
	struct caller caller = {
		.incarnation = incarnation_of(task),
		.tgid = bpf_get_current_pid_tgid() >> 32,
	};
	if (is_excluded(&caller))
		return false;
	*key = queue_key_of(&caller, 0, BPF_CORE_READ(qp, qp_num));
	/* An ibv_qp begins with the address of its ibv_context. */
	if (!bpf_probe_read_user(&key->object, sizeof(key->object), (void *)handle))
		return true;
	__sync_fetch_and_add(&connections_unread, 1);
	return false;
}

/* The library of a queue is that of its last post. */
static __always_inline bool is_linked(struct queue *queue)
{
	struct library *library = library_at(queue->library);

	return library && library->linked;
}

/* Nothing is outstanding on the QP any more. */
static __always_inline void end_linked(struct ib_qp *qp, __u32 reason)
{
	struct queue_key key = {};
	__u32 slot = 0;

	if (!tracked_key(&key, qp))
		return;
	bpf_map_delete_elem(&connected_qps, &key);
	struct queue *queue = find_queue(&key, &slot);
	if (queue && is_linked(queue))
		end_queue(&key, queue, reason);
}

/* The QP is ready to receive. Its first send will find this. */
static __always_inline void tell_connected(struct ib_qp *qp, struct kernel_qp *facts)
{
	struct queue_key key = {};
	__u32 slot = 0;

	if (!tracked_key(&key, qp))
		return;
	struct queue *queue = find_queue(&key, &slot);
	if (queue && queue->aligned_ns && !is_linked(queue))
		return; /* libibverbs told. */
	/* What was sent before is of an earlier QP, whose end was not seen. */
	if (queue && is_linked(queue) && queue->posted)
		end_queue(&key, queue, END_RESET);
	struct connected_qp told = {
		.aligned_ns = bpf_ktime_get_ns(),
		.remote_qp = facts->remote_qp,
		.max_send_wr = facts->max_send_wr,
		.signals_all = facts->signals_all,
		.has_creation = !!(facts->known & QP_KNOWS_CREATION),
		.port = facts->port,
		.qp_type = facts->type,
	};
	bpf_map_update_elem(&connected_qps, &key, &told, BPF_ANY);
}

static __always_inline void state_reached(struct ib_qp *qp, struct kernel_qp *facts)
{
	if (facts->state == IB_QPS_RESET)
		end_linked(qp, END_RESET);
	if (facts->state == IB_QPS_RTR)
		tell_connected(qp, facts);
}
