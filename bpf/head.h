/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "entry.h"
#include "loop.h"

/* Finished entries leave the queue at its head. */

/* Says whether the next one may be looked at. */
static __always_inline bool pass_one(struct queue *queue)
{
	__u64 head = *(volatile __u64 *)&queue->head;

	if (head >= *(volatile __u64 *)&queue->tail)
		return false;
	struct place place = place_of(queue, head);
	if (place.kind == PLACE_NONE)
		return false;
	__u64 word = entry_now(place.entry);
	if ((word & ~0xffULL) != entry_word(queue, head, 0) || (word & 0xff) <= ENTRY_LIVE)
		return false;
	if (__sync_val_compare_and_swap(&queue->head, head, head + 1) == head &&
	    (head + 1) % SEGMENT_ENTRIES == 0)
		release_segment_before(queue, head + 1);
	return true;
}

LOOP_BODY(pass_finished, struct queue *)
{
	return pass_one(*state) ? NEXT : STOP;
}

/* Most often it is one that has finished. */
static __always_inline void advance_head(struct queue *queue)
{
	struct queue *state = queue;

	if (pass_one(queue) && pass_one(queue))
		LOOP(pass_finished, &state);
}
