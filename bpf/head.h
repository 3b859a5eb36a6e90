/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "entry.h"
#include "loop.h"

/* Finished entries leave the queue at its head. */

LOOP_BODY(pass_finished, struct queue *)
{
	struct queue *queue = *state;
	__u64 head = *(volatile __u64 *)&queue->head;

	if (head >= *(volatile __u64 *)&queue->tail)
		return STOP;
	struct place place = place_of(queue, head);
	if (place.kind == PLACE_NONE)
		return STOP;
	__u64 word = entry_now(place.entry);
	if ((word & ~0xffULL) != entry_word(queue, head, 0) || (word & 0xff) <= ENTRY_LIVE)
		return STOP;
	if (__sync_val_compare_and_swap(&queue->head, head, head + 1) != head)
		return NEXT;
	if ((head + 1) % SEGMENT_ENTRIES == 0)
		release_segment_before(queue, head + 1);
	return NEXT;
}

static __always_inline void advance_head(struct queue *queue)
{
	struct queue *state = queue;

	LOOP(pass_finished, &state);
}
