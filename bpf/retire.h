/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "rival.h"
#include "sync.h"
#include "thread.h"

/* A work request whose completion was evidently missed is given up. */

#define SKIPPED_COMPLETIONS 64

/* A post that has not returned may not have reached the hardware yet: its
 * thread was preempted on the way, and what others posted meanwhile completes
 * first. */
#define POST_MOST_NS 10000000000ULL

static __always_inline bool is_being_posted(struct queue *queue, __u64 sequence,
					    struct entry *entry, __u64 now, __u32 *steps)
{
	return (*(volatile __u64 *)&entry->returned & RETURNED_NS) == 0 &&
	       now - entry->posted_ns < POST_MOST_NS &&
	       !has_posted_again(queue, sequence, entry, steps);
}

/* Whether so many completions of later requests were delivered first, and for
 * so long, that the entry's own was evidently missed. A thread may be preempted
 * between the queue and our probe while others go on. */
#define SKIPPED_NS 1000000000ULL

static __always_inline bool is_overdue(struct queue *queue, struct entry *entry, __u64 now)
{
	return entry->skipped_at &&
	       (__u32)queue->completions - entry->skipped_at > SKIPPED_COMPLETIONS &&
	       now - entry->posted_ns > SKIPPED_NS;
}

/* Gives up the oldest skipped entry when it is overdue, and with it the
 * alignment of the queue. */
static __always_inline void expire_skipped(struct queue *queue, __u64 sequence, __u64 now,
					   __u32 *steps)
{
	struct place place = place_of(queue, sequence);

	if (place.kind != PLACE_ENTRY || !is_overdue(queue, place.entry, now) ||
	    is_being_posted(queue, sequence, place.entry, now, steps))
		return;
	if (!entry_moves(place.entry, entry_word(queue, sequence, ENTRY_LIVE), ENTRY_LOST))
		return;
	__sync_fetch_and_add(&queue->lost, 1);
	__sync_fetch_and_sub(&queue->outstanding, 1);
	count(LOST_SKIPPED);
	if (queue->sync == QUEUE_SYNCED)
		suspect(queue->library);
	lose_sync(queue);
}

struct signaled_search {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
	bool found;
};

LOOP_BODY(look_signaled, struct signaled_search)
{
	struct queue *queue = state->queue;
	__u64 sequence = state->sequence;

	if (sequence >= state->end)
		return STOP;
	state->sequence++;
	struct place place = place_of(queue, sequence);
	if (place.kind != PLACE_ENTRY ||
	    entry_now(place.entry) != entry_word(queue, sequence, ENTRY_LIVE))
		return NEXT;
	if (!(place.entry->flags & ENTRY_SIGNALED) && !queue->sig_all)
		return NEXT;
	state->found = true;
	return STOP;
}

/* Whether a completion of a known work request is still due. */
static __noinline bool has_signaled(struct queue *queue)
{
	struct signaled_search search = { .queue = queue,
					  .sequence = queue->head,
					  .end = queue->tail };

	LOOP(look_signaled, &search);
	return search.found;
}
