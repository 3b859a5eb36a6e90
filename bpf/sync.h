/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/libraries.h"
#include "types.h"

/* When may a work request be timed? Only when it is certain that the
 * completion is its own. A queue seen from its start is synced. One that is
 * first seen in mid-stream, or that lost something, may have work requests
 * outstanding that we do not know of; their completions come first, and if the
 * wr_ids repeat nothing tells them apart from those of the requests we know. It
 * stays unsynced until
 *  - the last RECENT_IDS signaled posts had different wr_ids and IN_ORDER
 *    completions in a row found theirs at the head, or
 *  - a drain was seen: nothing posted or completed for DRAIN_NS, nothing known
 *    outstanding, and the CQ was polled and found empty after that time. */
#define IN_ORDER 8
#define DRAIN_NS 1000000000ULL

static __always_inline void lose_sync(struct queue *queue)
{
	queue->sync = QUEUE_UNSYNCED;
	queue->aligned_ns = 0;
	queue->recent = 0;
	queue->distinct = 0;
	queue->in_order = 0;
}

/* The first post decides whether the queue was seen from its start: the QP
 * became empty under our eyes, after the library was fully probed. */
static __always_inline void decide_first_sync(struct queue *queue, __u32 cookie)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	if (library && library->attached_ns && queue->aligned_ns > library->attached_ns) {
		queue->sync = QUEUE_SYNCED;
		queue->recv_known = 1;
		return;
	}
	lose_sync(queue);
}

/* How many of the latest signaled posts had different wr_ids. */
static __always_inline void note_posted_id(struct queue *queue, __u64 wr_id)
{
	__u32 position = queue->recent;
	__u32 age = RECENT_IDS;

	for (__u32 back = 1; back <= RECENT_IDS; back++) {
		if (back > position)
			break;
		if (queue->recent_ids[(position - back) % RECENT_IDS] == wr_id) {
			age = back;
			break;
		}
	}
	queue->recent_ids[position % RECENT_IDS] = wr_id;
	queue->recent = position + 1;
	queue->distinct = queue->distinct + 1 < age ? queue->distinct + 1 : age;
}

static __always_inline void note_in_order(struct queue *queue, bool at_head)
{
	queue->in_order = at_head ? queue->in_order + 1 : 0;
	if (queue->in_order >= IN_ORDER && queue->distinct >= RECENT_IDS)
		queue->sync = QUEUE_SYNCED;
}
