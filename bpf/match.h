/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "cqe.h"
#include "post.h"
#include "report.h"
#include "retire.h"

/* Which work request does a send completion belong to? */

struct search {
	struct queue *queue;
	__u64 sequence;
	__u64 wr_id;
	__u64 found;	  /* the signaled entry with the wr_id */
	__u64 run_start;  /* the first unsignaled entry that it retires */
	__u64 unsignaled; /* the first unsignaled entry with the wr_id */
	__u64 unsignaled_run;
	__u64 skipped; /* the first signaled entry before the one found */
	__u32 steps;
	bool has_skipped;
	bool failed; /* it may be of an unsignaled request */
	bool is_found;
	bool has_unsignaled;
};

/* The tail is read at every step. While this looks on, a completion of a later
 * post may take the entry that this one is of, wr_ids being equal: what is left
 * for this one is then an entry that was not there when the search began. */
LOOP_BODY(search_request, struct search)
{
	struct queue *queue = state->queue;
	__u64 sequence = state->sequence;

	if (sequence >= *(volatile __u64 *)&queue->tail || state->steps == 0)
		return STOP;
	state->sequence++;
	state->steps--;

	struct place place = place_of(queue, sequence);
	if (place.kind != PLACE_ENTRY) {
		state->run_start = sequence + 1;
		return NEXT;
	}
	__u64 word = entry_now(place.entry);
	if (word != entry_word(queue, sequence, ENTRY_LIVE)) {
		/* Entries that are being written belong to a post that has not
		 * started: they cannot be retired by this completion. Those
		 * before one that is delivered are retired by that one, which may
		 * be under way on another CPU. */
		if ((word & 0xff) <= ENTRY_DELIVERED ||
		    (word & ~0xffULL) != entry_word(queue, sequence, 0))
			state->run_start = sequence + 1;
		return NEXT;
	}
	bool signaled = (place.entry->flags & ENTRY_SIGNALED) || queue->sig_all;
	bool equal = place.entry->wr_id == state->wr_id;
	if (!signaled) {
		if (equal && !state->has_unsignaled) {
			state->has_unsignaled = true;
			state->unsignaled = sequence;
			state->unsignaled_run = state->run_start;
		}
		return NEXT;
	}
	if (equal) {
		state->found = sequence;
		state->is_found = true;
		return STOP;
	}
	state->run_start = sequence + 1;
	if (state->failed && state->has_unsignaled)
		return NEXT; /* It is not before the one that this will be. */
	if (!state->has_skipped)
		state->skipped = sequence;
	state->has_skipped = true;
	if (place.entry->skipped_at == 0)
		place.entry->skipped_at = (__u32)queue->completions | 1;
	return NEXT;
}

/* Most often it is the oldest entry. */
static __always_inline bool is_owner(struct queue *queue, __u64 sequence, __u64 wr_id)
{
	struct place place = place_of(queue, sequence);

	return place.kind == PLACE_ENTRY &&
	       entry_now(place.entry) == entry_word(queue, sequence, ENTRY_LIVE) &&
	       ((place.entry->flags & ENTRY_SIGNALED) || queue->sig_all) &&
	       place.entry->wr_id == wr_id;
}

/* Searches within what is left of the poll's budget: a poll delivers up to 256
 * completions, and a hostile process may make each of them search in vain. */
static __always_inline void search_queue(struct search *search, struct queue *queue, __u64 wr_id,
					 bool failed, __u32 *steps)
{
	__u64 head = *(volatile __u64 *)&queue->head;

	*search = (struct search){
		.queue = queue,
		.wr_id = wr_id,
		.sequence = head,
		.found = head,
		.run_start = head,
		.unsignaled = head,
		.unsignaled_run = head,
		.skipped = head,
		.steps = *steps,
		.failed = failed,
	};
	if (head < *(volatile __u64 *)&queue->tail && is_owner(queue, head, wr_id)) {
		search->is_found = true;
		return;
	}
	LOOP(search_request, search);
	*steps = search->steps;
	if (search->steps == 0)
		count(LOSS_SEARCH_TOO_LONG);
}

struct question {
	struct queue *queue;
	__u64 sequence;
	__u64 wr_id;
	__u32 steps;
	bool found;
	bool complete; /* every entry was asked */
};

LOOP_BODY(find_outstanding, struct question)
{
	__u64 sequence = state->sequence;

	if (sequence >= *(volatile __u64 *)&state->queue->tail) {
		state->complete = true;
		return STOP;
	}
	if (state->steps == 0)
		return STOP;
	state->sequence++;
	state->steps--;
	struct place place = place_of(state->queue, sequence);
	if (place.kind != PLACE_ENTRY || place.entry->wr_id != state->wr_id ||
	    entry_now(place.entry) != entry_word(state->queue, sequence, ENTRY_LIVE))
		return NEXT;
	state->found = true;
	return STOP;
}

/* Whether a send with the wr_id may be outstanding. This only asks: nothing is
 * skipped by it, as it is by search_queue(). */
static __noinline bool may_be_outstanding(struct queue *queue, __u64 wr_id, __u32 *steps)
{
	struct question question = {
		.queue = queue,
		.sequence = *(volatile __u64 *)&queue->head,
		.wr_id = wr_id,
		.steps = *steps,
	};

	LOOP(find_outstanding, &question);
	*steps = question.steps;
	if (question.found || question.complete)
		return question.found;
	count(LOSS_SEARCH_TOO_LONG);
	return true; /* There is no telling. */
}

struct run {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
	__u64 bytes;
	__u32 count;
};

LOOP_BODY(retire_request, struct run)
{
	__u64 sequence = state->sequence;

	if (sequence >= state->end)
		return STOP;
	state->sequence++;
	struct place place = place_of(state->queue, sequence);
	if (place.kind != PLACE_ENTRY)
		return NEXT;
	__u32 bytes = place.entry->bytes;
	if (entry_moves(place.entry, entry_word(state->queue, sequence, ENTRY_LIVE),
			ENTRY_RETIRED)) {
		state->bytes += bytes;
		state->count++;
	}
	return NEXT;
}

/* Whether another entry could as well own the completion: where posts of several
 * threads overlapped; and any entry after it, where
 *  - later requests completed before this one: its wr_id may have been used anew
 *    because its completion was missed,
 *  - completions are not seen in their order,
 *  - it is ambiguous itself: it may stand for a request of another thread, of
 *    which its own order says nothing. */
__noinline int has_rival(__u32 slot, struct thread *thread, int any)
{
	struct queue *queue = queue_at(slot);

	if (!queue || !thread)
		return false;
	struct unit *unit = &thread->unit;
	__u32 *steps = &thread->delivery.steps;
	struct rival_search search = {
		.queue = queue,
		.sequence = unit->sequence + 1,
		.end = queue->tail,
		.wr_id = unit->wr_id,
		.posted_ns = unit->posted_ns,
		.returned_ns = unit->returned_ns,
		.tid = unit->tid,
		.any = any,
	};
	bool too_far = search.sequence + *steps < search.end;

	if (too_far)
		search.end = search.sequence + *steps;
	LOOP(find_rival, &search);
	*steps -= search.sequence - unit->sequence - 1;
	if (!too_far || search.sequence < search.end)
		return search.found;
	count(LOSS_SEARCH_TOO_LONG);
	return true; /* There is no telling. */
}

/* sq_sig_all is a property of the QP that shows only at its creation. A
 * successful completion of an unsignaled request proves it, if the queue is
 * aligned; else that every one of several posts completed without one asking. */
#define SIG_ALL_EVIDENCE 8

static __always_inline bool infer_signal_all(struct queue *queue, struct search *search)
{
	if (!search->has_unsignaled || queue->signaled_seen || queue->sig_all)
		return false;
	if (queue->sync != QUEUE_SYNCED && queue->completions < SIG_ALL_EVIDENCE)
		return false;
	queue->sig_all = 1;
	/* Of an unsynced queue, the completions so far found nothing that asked
	 * for one: what they were of is still there, and done. */
	if (queue->sync != QUEUE_SYNCED)
		lose_sync(queue);
	return queue->sync == QUEUE_SYNCED;
}

enum claim {
	CLAIM_NONE,
	CLAIM_OWN,
	CLAIM_AMBIGUOUS,
	CLAIM_RACED,
};

/* Copies what the entry found says. */
static __always_inline bool read_entry(struct queue *queue, __u64 sequence, struct unit *unit,
				       bool *skipped)
{
	struct place place = place_of(queue, sequence);

	if (place.kind != PLACE_ENTRY)
		return false;
	struct entry *entry = place.entry;
	__u64 returned = *(volatile __u64 *)&entry->returned;
	unit->wr_id = entry->wr_id;
	unit->posted_ns = entry->posted_ns;
	unit->operation = entry->operation;
	unit->flags = entry->flags;
	unit->ambiguous = entry->ambiguous;
	unit->bytes = entry->bytes;
	unit->tid = entry->tid;
	unit->cpu = entry->cpu;
	unit->lkey = entry->lkey;
	unit->outstanding = entry->outstanding;
	unit->sequence = sequence;
	unit->returned_ns = returned & RETURNED_NS ? unit->posted_ns + (returned & RETURNED_NS) : 0;
	unit->port_bytes = entry->port_bytes;
	*skipped = entry->skipped_at != 0;
	return true;
}

/* Takes it out of the queue; false when it is not what was read any more. */
static __always_inline bool take_entry(struct queue *queue, __u64 sequence)
{
	struct place place = place_of(queue, sequence);

	return place.kind == PLACE_ENTRY &&
	       entry_moves(place.entry, entry_word(queue, sequence, ENTRY_LIVE), ENTRY_DELIVERED);
}

__noinline int retire_run(__u32 slot, struct thread *thread, __u64 start, __u64 end)
{
	struct queue *queue = queue_at(slot);

	if (!queue || !thread)
		return 0;
	struct unit *unit = &thread->unit;
	struct run run = {
		.queue = queue,
		.sequence = start,
		.end = end,
		.bytes = some_zero,
		.count = some_zero,
	};

	LOOP(retire_request, &run);
	unit->bytes += run.bytes;
	unit->requests += run.count;
	__sync_fetch_and_add(&queue->retired, run.count);
	return 0;
}

/* Not static: the verifier then checks it once, whatever it knows of the
 * callers' state. That is why it takes a slot and no queue. */
__noinline int claim_request(__u32 slot, struct thread *thread)
{
	struct queue *queue = queue_at(slot);
	struct search search;

	if (!queue || !thread)
		return CLAIM_NONE;
	struct delivery *delivery = &thread->delivery;
	struct unit *unit = &thread->unit;
	bool failed = delivery->wc.status != IBV_WC_SUCCESS;
	bool ambiguous = false;
	bool skipped = false;

	search_queue(&search, queue, delivery->wc.wr_id, failed, &delivery->steps);
	if (!failed && !search.is_found && infer_signal_all(queue, &search))
		search_queue(&search, queue, delivery->wc.wr_id, failed, &delivery->steps);
	if (failed && search.has_unsignaled) {
		/* A failed request completes even when it is unsignaled. */
		ambiguous = search.is_found;
		search.is_found = true;
		search.found = search.unsignaled;
		search.run_start = search.unsignaled_run;
	}
	if (!search.is_found)
		return CLAIM_NONE;
	if (!read_entry(queue, search.found, unit, &skipped))
		return CLAIM_RACED;
	/* Rivals are told before this entry is gone: who finds one of them to be
	 * the oldest then sees that it is not certain. */
	bool any = skipped || delivery->unordered || unit->ambiguous;
	if ((any || may_overlap(queue, search.found)) && has_rival(slot, thread, any))
		ambiguous = true;
	if (!take_entry(queue, search.found))
		return CLAIM_RACED;

	/* What was posted after the poll was taken for another one. */
	if (unit->ambiguous || unit->posted_ns > delivery->now)
		ambiguous = true;
	unit->status = delivery->wc.status;
	unit->vendor_error = failed ? delivery->wc.vendor_err : 0;
	unit->requests = 1;
	if (search.run_start < search.found)
		retire_run(slot, thread, search.run_start, search.found);
	__sync_fetch_and_sub(&queue->outstanding, unit->requests);
	__sync_fetch_and_add(&queue->delivered, 1);
	if (queue->sync != QUEUE_SYNCED)
		note_in_order(queue, !search.has_skipped);
	if (failed && ambiguous)
		lose_sync(queue);
	advance_head(queue);
	if (search.has_skipped)
		expire_skipped(queue, search.skipped, delivery->now, &delivery->steps);
	return ambiguous ? CLAIM_AMBIGUOUS : CLAIM_OWN;
}

static __always_inline struct series *series_for(struct delivery *delivery, __u32 device,
						 __u8 operation)
{
	struct series_key key = {
		.incarnation = delivery->caller.incarnation,
		.tgid = delivery->caller.tgid,
		.device = device,
		.operation = operation,
		.status = delivery->wc.status < IBV_STATUSES ? delivery->wc.status : IBV_STATUSES,
	};

	return series_of(&key);
}

static __always_inline void count_unmatched(struct delivery *delivery, __u32 device, __u32 why)
{
	struct series *series = series_for(delivery, device, OP_UNKNOWN);

	count(why);
	if (series)
		add_completion(series, 0, 0);
}

/* Whether every work request that is outstanding is known. */
static __always_inline bool is_certain(struct queue *queue)
{
	return queue->sync == QUEUE_SYNCED && !*(volatile __u32 *)&queue->undecided;
}

static __always_inline void deliver_unmatched(struct queue *queue, struct delivery *delivery)
{
	bool synced = is_certain(queue);

	count_unmatched(delivery, queue->device,
			synced ? COMPLETIONS_UNMATCHED : COMPLETIONS_BEFORE_ATTACH);
	if (synced) {
		suspect(queue->library);
		lose_sync(queue);
	}
}

/* A post whose return is probed and was not seen yet has not returned, unless it
 * was missed: its thread does something else, or returns are not probed any more. */
static __always_inline bool is_inside_post(struct queue *queue, struct unit *unit,
					   struct caller *caller)
{
	if (!(unit->flags & ENTRY_RETURNS) || unit->tid == caller->tid)
		return false;
	return (unit->flags & ENTRY_BUILT) || has_returns(library_at(queue->library), POST_SEND);
}

/* A successful send completion, or a failed one that can only be of a send. */
__noinline int deliver_send(__u32 slot, struct thread *thread)
{
	struct queue *queue = queue_at(slot);
	int claim = CLAIM_RACED;

	if (!queue || !thread)
		return 0;
	struct delivery *delivery = &thread->delivery;
	struct unit *unit = &thread->unit;
	follow_losses(queue, &delivery->caller);
	give_up_undecided(queue, delivery->now);
	bool certain = is_certain(queue);
	for (int attempt = 0; attempt < 3 && claim == CLAIM_RACED; attempt++)
		claim = claim_request(slot, thread);
	queue->completions++; /* Says how much was seen; an addition may be lost. */
	queue->activity_ns = delivery->now;
	if (claim == CLAIM_RACED)
		count(LOSS_CONTENDED);
	if (claim == CLAIM_NONE || claim == CLAIM_RACED) {
		deliver_unmatched(queue, delivery);
		return 0;
	}

	struct device *device = device_at(queue->device);
	if (device) {
		__u64 *total = &device->bytes[receives(unit->operation)];
		__u64 before = __sync_fetch_and_add(total, unit->bytes);

		unit->port_bytes = before + unit->bytes - unit->port_bytes;
	}
	struct series *series = series_for(delivery, queue->device, unit->operation);
	if (series)
		add_completion(series, unit->requests - 1, unit->bytes);
	add_queue_bytes(queue, unit->bytes);
	if (read_cqe_stamps)
		sample_cqe(queue, thread);

	unit->delivered_ns = delivery->now;
	if (!unit->returned_ns && is_inside_post(queue, unit, &delivery->caller))
		unit->returned_ns = unit->delivered_ns;
	unit->previous_ns = queue->delivered_ns;
	unit->short_poll_ns = unit->posted_ns < delivery->evidence_ns ? delivery->short_poll_ns : 0;
	if (queue->delivered_ns < delivery->now)
		queue->delivered_ns = delivery->now;
	if (!certain) {
		count(COMPLETIONS_UNSYNCED);
		return 0;
	}
	if (claim == CLAIM_AMBIGUOUS) {
		count(COMPLETIONS_AMBIGUOUS);
		return 0;
	}
	count(COMPLETIONS_MATCHED);
	account_unit(queue, thread, series);
	return 0;
}
