/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "head.h"
#include "library.h"
#include "maps/connected_qps.h"
#include "process.h"

/* When may a work request be timed? Only when it is certain that the
 * completion is its own. A queue seen from its start is synced. One that is
 * first seen in mid-stream, or that lost something, may have work requests
 * outstanding that we do not know of; their completions come first, and if the
 * wr_ids repeat nothing tells them apart from those of the requests we know. It
 * stays unsynced until
 *  - more requests were posted than a Send Queue holds, those that complete by
 *    themselves with wr_ids that only rose: what was there before has completed
 *    since, and no two that we know are alike; and IN_ORDER completions in a row
 *    found theirs at the head, or
 *  - a drain was seen: nothing posted or completed for DRAIN_NS, nothing known
 *    outstanding, and the CQ was polled and found empty after that time. */
#define IN_ORDER 8
#define DRAIN_NS 1000000000ULL
/* The deepest Send Queue that devices offer (max_qp_wr of mlx5). */
#define DEEPEST_QUEUE 32768

struct dropping {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
	__u32 count;
};

LOOP_BODY(drop_request, struct dropping)
{
	__u64 sequence = state->sequence;

	if (sequence >= state->end)
		return STOP;
	state->sequence++;
	struct place place = place_of(state->queue, sequence);
	if (place.kind == PLACE_ENTRY &&
	    entry_moves(place.entry, entry_word(state->queue, sequence, ENTRY_LIVE), ENTRY_LOST))
		state->count++;
	return NEXT;
}

/* Begins the search for alignment anew. What was outstanding is given up: which
 * of it completes next is not known, and one that stayed would be taken for
 * another. */
static __noinline void lose_sync(struct queue *queue)
{
	struct dropping dropping = {
		.queue = queue,
		.sequence = *(volatile __u64 *)&queue->head,
		.end = *(volatile __u64 *)&queue->tail,
		.count = some_zero,
	};

	queue->sync = QUEUE_UNSYNCED;
	queue->aligned_ns = 0;
	queue->increasing = 0;
	queue->in_order = 0;
	LOOP(drop_request, &dropping);
	__sync_fetch_and_add(&queue->lost, dropping.count);
	__sync_fetch_and_sub(&queue->outstanding, dropping.count);
	count_n(LOST_RESYNC, dropping.count);
	advance_head(queue);
}

/* Takes note of what the process lost since. The clock is read before the epoch
 * and rises after it. */
static __always_inline void follow_losses(struct queue *queue, struct caller *caller)
{
	__u32 clock = losses_of_any();

	if (queue->loss_clock == clock)
		return;
	__u32 epoch = loss_epoch_of(caller);
	if (queue->loss_epoch != epoch) {
		queue->loss_epoch = epoch;
		lose_sync(queue);
	}
	queue->loss_clock = clock;
}

/* The first post decides whether the queue was seen from its start: the QP
 * became empty under our eyes, after the library was fully probed. */
static __always_inline bool seen_from_start(struct queue *queue, struct library *library)
{
	return library && library->attached_ns && queue->aligned_ns > library->attached_ns;
}

/* Takes over what the kernel told of a QP whose program has libibverbs linked in.
 * That is true of the first queue of the QP alone, and that it has been empty only if
 * nothing went by unseen: there was no queue yet to take note of it. */
static __noinline void learn_connection(struct queue *queue)
{
	struct connected_qp *told = bpf_map_lookup_elem(&connected_qps, &queue->key);

	if (!told)
		return;
	if (told->aligned_ns > *(volatile __u64 *)&last_loss_ns)
		queue->aligned_ns = told->aligned_ns;
	queue->remote_qp = told->remote_qp;
	queue->port = told->port;
	queue->qp_type = told->qp_type;
	if (told->has_creation) {
		queue->limit = told->max_send_wr;
		queue->sig_all = told->signals_all;
	}
	bpf_map_delete_elem(&connected_qps, &queue->key);
}

static __always_inline void decide_first_sync(struct queue *queue, struct library *library)
{
	if (library && library->linked)
		learn_connection(queue);
	if (seen_from_start(queue, library))
		queue->sync = QUEUE_SYNCED;
	else
		lose_sync(queue);
}

/* Counts the requests since the wr_ids of those that complete by themselves rise.
 * The others take room in the Send Queue as well. */
static __always_inline void note_posted(struct queue *queue, __u64 wr_id, bool completes)
{
	if (!completes) {
		if (queue->increasing)
			queue->increasing++;
		return;
	}
	if (queue->increasing == 0 || wr_id > queue->last_id)
		queue->increasing++;
	else
		queue->increasing = 1;
	queue->last_id = wr_id;
}

static __always_inline void note_in_order(struct queue *queue, bool at_head)
{
	/* Providers round the limit up, librxe to nearly twice. */
	__u32 depth = queue->limit && queue->limit < DEEPEST_QUEUE / 4 ? queue->limit * 4
								       : DEEPEST_QUEUE;

	queue->in_order = at_head ? queue->in_order + 1 : 0;
	if (queue->in_order >= IN_ORDER && queue->increasing > depth)
		queue->sync = QUEUE_SYNCED;
}
