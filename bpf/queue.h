/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "control.h"
#include "device.h"
#include "knobs.h"
#include "maps/connected_qps.h"
#include "maps/free_queues.h"
#include "maps/untracked_queues.h"
#include "process.h"
#include "queue_end.h"
#include "queue_find.h"
#include "thread.h"

static __always_inline bool is_same_queue(const struct queue_key *a, const struct queue_key *b)
{
	return a->object == b->object && a->incarnation == b->incarnation &&
	       a->qp_num == b->qp_num && a->tgid == b->tgid;
}

/* find_queue, without a look into the index where the thread has worked on the
 * queue before. */
static __always_inline struct queue *recent_queue(struct thread *thread, struct queue_key *key,
						  __u32 *slot)
{
	__u32 *recent = &thread->recent[key->qp_num % RECENT_QUEUES];
	struct queue *queue = queue_at(*recent);

	if (queue && queue->indexed && !queue->ended_ns && is_same_queue(&queue->key, key)) {
		*slot = *recent;
		return queue;
	}
	queue = find_queue(key, slot);
	if (queue)
		*recent = *slot;
	return queue;
}

/* The queue of a completion where the thread has worked on it before and it
 * completes to the CQ: the context of the CQ is that of the QP. As long as a QP
 * lives there is no other CQ at the address. */
static __always_inline struct queue *recent_of_cq(struct thread *thread, struct caller *caller,
						  __u32 qp_num, __u64 cq, __u32 *slot)
{
	__u32 recent = thread->recent[qp_num % RECENT_QUEUES];
	struct queue *queue = queue_at(recent);

	if (!queue || !queue->indexed || queue->ended_ns || queue->key.qp_num != qp_num ||
	    queue->key.incarnation != caller->incarnation || queue->key.tgid != caller->tgid ||
	    (queue->send_cq != cq && queue->recv_cq != cq))
		return NULL;
	*slot = recent;
	return queue;
}

/* Says whether the process is traced; its first queue makes it known to user
 * space, which may want it excluded. The tgid is the caller's, where it can be a
 * key. */
static __always_inline bool admit(__u32 *tgid, struct caller *caller)
{
	struct process *known = bpf_map_lookup_elem(&processes, tgid);

	if (is_excluded(caller))
		return false;
	if (known && known->incarnation == caller->incarnation)
		return true;

	struct process process = {
		.incarnation = caller->incarnation,
		.start_ns = caller->start_ns,
	};
	if (bpf_map_update_elem(&processes, tgid, &process, BPF_ANY)) {
		/* Nobody could note what goes by unseen of it: nothing of it is timed. */
		count(LOSS_PROCESSES_FULL);
		return false;
	}
	tell(CONTROL_NEW_PROCESS, caller->tgid, caller->incarnation);
	return true;
}

static __always_inline bool admit_process(struct caller *caller)
{
	__u32 tgid = caller->tgid;

	return admit(&tgid, caller);
}

/* A queue that is not tracked from its first request on. What the kernel told of
 * the QP is not true of what is seen of it later. */
static __always_inline void note_untracked(struct queue_key *key, __u64 now)
{
	bpf_map_update_elem(&untracked_queues, key, &now, BPF_ANY);
	bpf_map_delete_elem(&connected_qps, key);
}

/* A new queue, NULL when it is not to be tracked or there is no room. The
 * caller fills in what it knows of the QP. */
static __noinline struct queue *create_queue(struct queue_key *key, struct caller *caller,
					     __u64 context, __u32 *slot)
{
	__u64 now = bpf_ktime_get_ns();

	/* Linux 6.1 has no stack left for an answer of admit that tells why. */
	if (!admit(&key->tgid, caller)) {
		if (!is_excluded(caller))
			note_untracked(key, now);
		return NULL;
	}

	__u32 device = device_of_context(context);
	if (is_ignored_device(device))
		return NULL;

	__u32 index = 0;
	if (bpf_map_pop_elem(&free_queues, &index)) {
		note_untracked(key, now);
		return NULL;
	}
	struct queue *queue = queue_at(index);
	if (!queue)
		return NULL;

	queue->key = *key;
	queue->start_ns = caller->start_ns;
	queue->sync = QUEUE_NEW;
	queue->device = device;
	queue->loss_clock = losses_of_any();
	queue->loss_epoch = loss_epoch_of(caller);
	queue->end = END_NONE;
	queue->ended_ns = 0;
	queue->activity_ns = now;
	if (bpf_map_update_elem(&queue_index, key, &index, BPF_NOEXIST) == 0) {
		queue->indexed = 1;
		bpf_map_delete_elem(&untracked_queues, key);
		*slot = index;
		return queue;
	}

	/* Another thread of the process made it first: the slot is nobody's again,
	 * and user space must not take the key for a queue of its own. */
	__builtin_memset(&queue->key, 0, sizeof(queue->key));
	bpf_map_push_elem(&free_queues, &index, BPF_ANY);
	return find_queue(key, slot);
}
