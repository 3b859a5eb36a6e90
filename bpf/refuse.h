/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/rejected.h"
#include "retire.h"
#include "record.h"

/* Posts that the provider refuses, in whole or from some request on. */

struct bad_search {
	__u64 wr, bad;
	__u32 index, left;
	bool found;
};

LOOP_BODY(find_bad, struct bad_search)
{
	__u64 next;

	if (state->wr == state->bad) {
		state->found = true;
		return STOP;
	}
	if (state->left == 0 || !state->wr || !read_next_wr(&next, state->wr))
		return STOP;
	state->left--;
	state->index++;
	state->wr = next;
	return NEXT;
}

/* Where in the list of a call the refused request is. */
static __always_inline struct bad_search find_in_call(struct call *call, __u64 bad)
{
	struct bad_search search = {
		.wr = call->list, .bad = bad, .left = call->count, .index = some_zero
	};

	if (bad)
		LOOP(find_bad, &search);
	return search;
}

struct undoing {
	struct queue *queue;
	__u64 sequence;
	__u32 left;
};

LOOP_BODY(undo_request, struct undoing)
{
	if (state->left == 0)
		return STOP;
	__u64 sequence = state->sequence;
	state->left--;
	state->sequence++;

	struct place place = place_of(state->queue, sequence);
	if (place.kind == PLACE_ENTRY &&
	    entry_moves(place.entry, entry_word(state->queue, sequence, ENTRY_LIVE),
			ENTRY_UNDONE)) {
		__sync_fetch_and_add(&state->queue->undone, 1);
		__sync_fetch_and_sub(&state->queue->outstanding, 1);
	}
	return NEXT;
}

/* A refused post took effect up to *bad_wr. That may be the pointer that ended
 * the list for us because nothing is there: then all of it took effect. */
static __noinline void undo_from_bad(struct queue *queue, struct call *call, __u64 bad)
{
	struct bad_search search = find_in_call(call, bad);

	if (!search.found) {
		count(LOSS_BAD_WR);
		lose_sync(queue);
		return;
	}
	struct undoing undo = {
		.queue = queue,
		.sequence = call->first + search.index,
		.left = call->count - search.index,
	};
	LOOP(undo_request, &undo);
	advance_head(queue);
}

/* Takes back the receives from *bad_wr on. */
static __noinline void take_back(struct queue *queue, struct call *call, __u64 bad)
{
	struct bad_search search = find_in_call(call, bad);

	if (search.found)
		__sync_fetch_and_sub(&queue->recv_posted, call->count - search.index);
	else
		queue->recv_known = 0;
}

/* Counts a refused post; the error is 0 where it is not known. */
static __noinline void count_rejected(struct queue *queue, int result)
{
	struct rejected_key key = {
		.incarnation = queue->key.incarnation,
		.tgid = queue->key.tgid,
		.error = result < 0 ? -result : result,
		.device = queue->device,
	};
	__u64 *value = bpf_map_lookup_elem(&rejected, &key);

	__sync_fetch_and_add(&queue->rejected, 1);
	if (!value) {
		__u64 zero = 0;
		bpf_map_update_elem(&rejected, &key, &zero, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&rejected, &key);
	}
	if (value)
		__sync_fetch_and_add(value, 1);
	else
		count(LOSS_REJECTED_FULL);
}

/* The queue of a call, NULL when it is not followed or its slot was reused. */
static __always_inline struct queue *queue_of_call(struct call *call)
{
	struct queue *queue = queue_at(call->slot);

	return queue && queue->generation == call->generation ? queue : NULL;
}

/* The list of a post went on where it could not be read, on a page that was not
 * there at that moment, and whether the provider stopped there is undecided. The
 * time is noted before the number rises: give_up_undecided() reads them in the
 * opposite order. */
static __always_inline void note_undecided(struct queue *queue, __u64 entry_ns)
{
	*(volatile __u64 *)&queue->undecided_ns = entry_ns;
	__sync_fetch_and_add(&queue->undecided, 1);
}

/* One that cannot be taken off now is given up later. */
static __always_inline void take_off_undecided(struct queue *queue)
{
	for (int i = 0; i < 4; i++) {
		__u32 n = *(volatile __u32 *)&queue->undecided;

		if (!n || __sync_val_compare_and_swap(&queue->undecided, n, n - 1) == n)
			return;
	}
}

static __always_inline void decide_unread(struct queue *queue, struct call *call, bool posted)
{
	if (!call->unread)
		return;
	call->unread = 0;
	if (call->entry_ns <= *(volatile __u64 *)&queue->given_up_ns)
		return;
	if (posted)
		give_up(queue, LOST_READ_WR, 1);
	take_off_undecided(queue);
}

/* How long it stays undecided: nothing more may be seen of the thread. */
#define UNDECIDED_NS 1000000000ULL

static __always_inline void give_up_undecided(struct queue *queue, __u64 now)
{
	__u32 n = *(volatile __u32 *)&queue->undecided;

	if (!n)
		return;
	__u64 last = *(volatile __u64 *)&queue->undecided_ns;
	if (now < last + UNDECIDED_NS)
		return;
	/* At no moment is the queue certain. */
	queue->sync = QUEUE_UNSYNCED;
	*(volatile __u64 *)&queue->given_up_ns = last;
	if (__sync_val_compare_and_swap(&queue->undecided, n, 0) == n)
		give_up(queue, LOST_READ_WR, n);
}

/* The call before is over, and its return was not seen. */
static __noinline void settle_call(struct call *call)
{
	struct queue *queue = queue_of_call(call);

	if (queue) {
		/* It was left to the return, which knows the error. */
		if (call->refused && call->returns)
			count_rejected(queue, 0);
		decide_unread(queue, call, true);
	}
	call->refused = 0;
	call->unread = 0;
}

/* To be called when the thread is seen to do something: a post whose return is
 * not probed is over then. */
static __always_inline void settle_post(struct thread *thread)
{
	if (thread->post.unread && !thread->post.returns)
		settle_call(&thread->post);
}
