/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "entry.h"
#include "loop.h"
#include "sync.h"

/* What happens at the head of a queue: finished entries leave it, and those
 * whose completion was evidently missed are given up. */

#define SKIPPED_COMPLETIONS 64

struct heading {
	struct queue *queue;
	bool moved;
};

LOOP_BODY(pass_finished, struct heading)
{
	struct queue *queue = state->queue;
	__u64 head = *(volatile __u64 *)&queue->head;

	if (head >= *(volatile __u64 *)&queue->tail)
		return STOP;
	struct place place = place_of(queue, head);
	if (place.kind == PLACE_NONE)
		return STOP;
	if (place.kind == PLACE_ENTRY) {
		__u64 word = entry_now(place.entry);

		if ((word & ~0xffULL) != entry_word(queue, head, 0) || (word & 0xff) <= ENTRY_LIVE)
			return STOP;
	}
	if (__sync_val_compare_and_swap(&queue->head, head, head + 1) != head)
		return NEXT;
	state->moved = true;
	if ((head + 1) % SEGMENT_ENTRIES == 0)
		release_segment_before(queue, head + 1);
	return NEXT;
}

static __always_inline void advance_head(struct queue *queue)
{
	struct heading heading = {.queue = queue};

	LOOP(pass_finished, &heading);
	if (heading.moved)
		queue->head_completions = 0;
}

struct expiry {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
};

/* Gives up the unsignaled run at the head and the signaled entry that ends it. */
LOOP_BODY(expire_request, struct expiry)
{
	struct queue *queue = state->queue;
	__u64 sequence = state->sequence;

	if (sequence >= state->end)
		return STOP;
	state->sequence++;
	struct place place = place_of(queue, sequence);
	if (place.kind != PLACE_ENTRY)
		return NEXT;
	bool signaled = (place.entry->flags & ENTRY_SIGNALED) || queue->sig_all;
	if (!entry_moves(place.entry, entry_word(queue, sequence, ENTRY_LIVE), ENTRY_LOST))
		return NEXT;
	__sync_fetch_and_add(&queue->lost, 1);
	__sync_fetch_and_sub(&queue->outstanding, 1);
	count(LOST_SKIPPED);
	return signaled ? STOP : NEXT;
}

/* A post that has not returned may not have reached the hardware yet: its
 * thread was preempted on the way, and what others posted meanwhile completes
 * first. */
static __always_inline bool is_being_posted(struct queue *queue, __u64 sequence)
{
	struct place place = place_of(queue, sequence);

	return place.kind == PLACE_ENTRY && (*(volatile __u64 *)&place.entry->returned & RETURNED_NS) == 0;
}

static __always_inline void expire_skipped(struct queue *queue, __u64 before)
{
	struct expiry expiry = {.queue = queue, .sequence = queue->head, .end = before};

	if (queue->head_completions <= SKIPPED_COMPLETIONS || expiry.sequence >= before)
		return;
	if (is_being_posted(queue, expiry.sequence)) {
		queue->head_completions = 0;
		return;
	}
	LOOP(expire_request, &expiry);
	lose_sync(queue);
	queue->head_completions = 0;
	advance_head(queue);
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
	if (place.kind != PLACE_ENTRY || entry_now(place.entry) != entry_word(queue, sequence, ENTRY_LIVE))
		return NEXT;
	if (!(place.entry->flags & ENTRY_SIGNALED) && !queue->sig_all)
		return NEXT;
	state->found = true;
	return STOP;
}

/* Whether a completion of a known work request is still due. */
static __noinline bool has_signaled(struct queue *queue)
{
	struct signaled_search search = {.queue = queue, .sequence = queue->head, .end = queue->tail};

	LOOP(look_signaled, &search);
	return search.found;
}
