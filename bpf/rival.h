/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "head.h"

/* Entries are in the order in which posts were entered. Posts of several
 * threads on one queue may reach the hardware in another order, and then a
 * wr_id that both use does not tell whose completion it is. What is certain of a
 * post E and one entered after it, X:
 *  - of one thread, they follow each other;
 *  - once the thread of E has posted again, E had returned, and all that was
 *    entered after that follows E;
 *  - if the return of E was seen, all that was entered after it follows E.
 * What is not certain is taken for a rival. */

/* Notes who posts, after the sequence numbers were reserved and before the
 * entries are live. Everything up to the tail, read when others see us as the
 * last poster, may overlap: two threads that post at the same time cannot both
 * find themselves the last one. */
static __always_inline void note_poster(struct queue *queue, __u32 tid)
{
	if (*(volatile __u32 *)&queue->last_poster == tid)
		return;
	__sync_lock_test_and_set(&queue->last_poster, tid);
	__u64 tail = *(volatile __u64 *)&queue->tail;
	__u64 mark = 0;

	for (int i = 0; i < 4; i++) {
		mark = *(volatile __u64 *)&queue->overlap_mark;
		if (mark >= tail ||
		    __sync_val_compare_and_swap(&queue->overlap_mark, mark, tail) == mark)
			return;
	}
	/* A crowd. The mark only rises, so that with what it lacked when it was
	 * last read it is past the tail, and not far. */
	__sync_fetch_and_add(&queue->overlap_mark, tail - mark);
}

static __always_inline bool may_overlap(struct queue *queue, __u64 sequence)
{
	return sequence < *(volatile __u64 *)&queue->overlap_mark;
}

struct rival_search {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
	__u64 wr_id;
	__u64 posted_ns, returned_ns; /* of E; 0: its return was not seen */
	__u32 tid;
	bool any; /* also those that follow for certain */
	bool found;
};

/* Whether the entry, and all after it, follows E for certain. */
static __always_inline bool follows(struct rival_search *search, struct entry *entry)
{
	if (entry->tid == search->tid)
		return entry->posted_ns != search->posted_ns;
	return search->returned_ns && entry->posted_ns > search->returned_ns;
}

static __always_inline bool is_written(struct queue *queue, __u64 sequence, __u64 word)
{
	return (word & ~0xffULL) == entry_word(queue, sequence, 0) && (word & 0xff) >= ENTRY_LIVE;
}

LOOP_BODY(find_rival, struct rival_search)
{
	struct queue *queue = state->queue;
	__u64 sequence = state->sequence;

	if (sequence >= state->end)
		return STOP;
	state->sequence++;
	struct place place = place_of(queue, sequence);
	if (place.kind != PLACE_ENTRY)
		return NEXT;
	__u64 word = entry_now(place.entry);
	if (!is_written(queue, sequence, word))
		return NEXT;
	if (!state->any && follows(state, place.entry))
		return STOP;
	if ((word & 0xff) != ENTRY_LIVE ||
	    (!(place.entry->flags & ENTRY_SIGNALED) && !queue->sig_all))
		return NEXT;
	if (place.entry->wr_id == state->wr_id && (state->any || place.entry->tid != state->tid)) {
		/* What is left over when the other one was taken is no more certain. */
		place.entry->ambiguous = 1;
		state->found = true;
	}
	return NEXT;
}

struct repost_search {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
	__u64 posted_ns;
	__u32 tid;
	bool found;
};

LOOP_BODY(find_repost, struct repost_search)
{
	__u64 sequence = state->sequence;

	if (sequence >= state->end)
		return STOP;
	state->sequence++;
	struct place place = place_of(state->queue, sequence);
	if (place.kind != PLACE_ENTRY ||
	    !is_written(state->queue, sequence, entry_now(place.entry)))
		return NEXT;
	if (place.entry->tid != state->tid || place.entry->posted_ns == state->posted_ns)
		return NEXT;
	state->found = true;
	return STOP;
}

/* Whether the thread of an entry is known to have posted on the queue again, by
 * what is within the steps that are left. */
static __noinline bool has_posted_again(struct queue *queue, __u64 sequence, struct entry *entry,
					__u32 *steps)
{
	struct repost_search search = {
		.queue = queue,
		.sequence = sequence + 1,
		.end = queue->tail,
		.posted_ns = entry->posted_ns,
		.tid = entry->tid,
	};

	if (search.sequence + *steps < search.end)
		search.end = search.sequence + *steps;
	LOOP(find_repost, &search);
	*steps -= search.sequence - sequence - 1;
	return search.found;
}
