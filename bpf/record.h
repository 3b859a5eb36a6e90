/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "chain.h"
#include "device.h"
#include "extended_types.h"
#include "maps/entry_spans.h"
#include "maps/traces_ctx_v1.h"
#include "queue.h"
#include "rival.h"
#include "sync.h"
#include "thread.h"

/* Makes entries of the work requests of a post. */

static __always_inline bool receives(__u8 operation)
{
	return operation == OP_RDMA_READ || operation == OP_ATOMIC_CMP_AND_SWP ||
	       operation == OP_ATOMIC_FETCH_AND_ADD || operation == OP_RECV;
}

struct filling {
	struct queue *queue;
	__u64 wr;
	__u64 sequence;
	__u64 now;
	__u64 port_bytes[2];
	__u32 left;
	__u32 outstanding;
	__u32 tid;
	__u32 flags;
	bool broken;
	bool unreadable;
	bool untimed; /* they may be another's, see struct call */
};

static __always_inline void remember_span(struct queue *queue, __u64 sequence)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct trace_context *span = bpf_map_lookup_elem(&traces_ctx_v1, &thread);

	if (!span)
		return;
	struct entry_ref ref = { .generation = queue->generation, .sequence = sequence };
	bpf_map_update_elem(&entry_spans, &ref, span, BPF_ANY);
}

/* A work request, however it was handed over. */
static __always_inline void write_request(struct filling *filling, struct queue *queue,
					  __u64 sequence, struct entry *entry,
					  const struct built *request)
{
	bool signaled = request->flags & ENTRY_SIGNALED;

	entry->wr_id = request->wr_id;
	entry->posted_ns = filling->now;
	entry->operation = request->operation;
	entry->port_bytes = filling->port_bytes[receives(request->operation)];
	entry->returned = returned_tag(queue, sequence);
	entry->bytes = request->bytes;
	entry->lkey = request->lkey;
	entry->tid = filling->tid;
	entry->cpu = bpf_get_smp_processor_id();
	entry->outstanding = filling->outstanding;
	entry->flags = filling->flags | (signaled ? ENTRY_SIGNALED : 0);
	entry->ambiguous = filling->untimed;
	entry->skipped_at = 0;
	/* Until here the word is that of an earlier life, in which it finished. */
	__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_LIVE));

	if (signaled)
		queue->signaled_seen = 1;
	bool completes = signaled || queue->sig_all;
	if (queue->sync != QUEUE_SYNCED)
		note_posted(queue, request->wr_id, completes);
	if (completes && have_trace_contexts)
		remember_span(queue, sequence);
}

static __always_inline void write_entry(struct filling *filling, struct queue *queue,
					__u64 sequence, struct entry *entry,
					struct ibv_send_wr_head *wr)
{
	struct memory memory = memory_of(wr);
	struct built request = {
		.wr_id = wr->wr_id,
		.bytes = memory.bytes,
		.lkey = memory.lkey,
		.operation = known_operation(wr->opcode),
		.flags = wr->send_flags & IBV_SEND_SIGNALED ? ENTRY_SIGNALED : 0,
	};

	write_request(filling, queue, sequence, entry, &request);
}

/* An entry for a request that cannot be read any more. */
static __always_inline void write_lost(struct filling *filling, struct queue *queue, __u64 sequence,
				       struct entry *entry)
{
	filling->unreadable = true;
	entry->posted_ns = filling->now;
	entry->tid = filling->tid;
	__sync_fetch_and_add(&queue->lost, 1);
	__sync_fetch_and_sub(&queue->outstanding, 1);
	count(LOST_READ_WR);
	__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_LOST));
}

/* The place of a reserved sequence number, with memory. */
static __always_inline struct place reserved_place(struct queue *queue, __u64 sequence)
{
	struct place place = place_of(queue, sequence);

	if (place.kind == PLACE_ENTRY || !provide_segment(queue, sequence))
		return place;
	return place_of(queue, sequence);
}

LOOP_BODY(fill_request, struct filling)
{
	struct ibv_send_wr_head wr = {};
	struct queue *queue = state->queue;
	__u64 sequence = state->sequence;

	if (state->left == 0)
		return STOP;
	state->left--;
	state->sequence++;
	state->outstanding++;

	bool readable = state->wr && read_send_wr(&wr, state->wr);
	state->wr = readable ? wr.next : 0;

	struct place place = reserved_place(queue, sequence);
	if (place.kind != PLACE_ENTRY) {
		state->broken = true;
		return STOP;
	}
	if (readable)
		write_entry(state, queue, sequence, place.entry, &wr);
	else
		write_lost(state, queue, sequence, place.entry);
	return NEXT;
}

/* A post of one request, which was read already. */
static __always_inline void fill_single(struct filling *filling, struct ibv_send_wr_head *wr)
{
	struct place place = reserved_place(filling->queue, filling->sequence);

	filling->outstanding++;
	if (place.kind == PLACE_ENTRY)
		write_entry(filling, filling->queue, filling->sequence, place.entry, wr);
	else
		filling->broken = true;
}

static __always_inline void note_peak(struct queue *queue, __u32 outstanding)
{
	if (queue->peak_interval != collection) {
		queue->peak_interval = collection;
		queue->peak = outstanding;
	} else if (outstanding > queue->peak) {
		queue->peak = outstanding;
	}
}

/* Work requests that were posted and are not followed. */
static __always_inline void give_up(struct queue *queue, __u32 why, __u32 n)
{
	count_n(why, n);
	__sync_fetch_and_add(&queue->posted, n);
	__sync_fetch_and_add(&queue->lost, n);
	lose_sync(queue);
}

struct providing {
	struct queue *queue;
	__u64 sequence;
	__u64 end;
	bool failed;
};

LOOP_BODY(provide_next, struct providing)
{
	if (state->sequence >= state->end)
		return STOP;
	if (!provide_segment(state->queue, state->sequence)) {
		state->failed = true;
		return STOP;
	}
	state->sequence = (state->sequence | (SEGMENT_ENTRIES - 1)) + 1;
	return NEXT;
}

/* Memory for the next n entries, before they are reserved: what is reserved has
 * to be written, or the head could never pass it. */
static __noinline bool provide_segments(struct queue *queue, __u32 n)
{
	struct providing providing = { .queue = queue,
				       .sequence = *(volatile __u64 *)&queue->tail };

	providing.end = providing.sequence + n;
	LOOP(provide_next, &providing);
	return !providing.failed;
}

/* What keeps a chain from being followed; 0: nothing. */
static __always_inline __u32 hindrance(struct queue *queue, struct chain *chain)
{
	__u64 tail = *(volatile __u64 *)&queue->tail;

	if (chain->deeper)
		return LOST_CHAIN_TOO_DEEP;
	/* Others may have moved the head past this tail since it was read. */
	if ((__s64)(tail - *(volatile __u64 *)&queue->head + chain->count) > DEPTH_LIMIT)
		return LOST_QUEUE_TOO_DEEP;
	if (chain->count == 1 && place_of(queue, tail).kind == PLACE_ENTRY)
		return 0;
	return provide_segments(queue, chain->count) ? 0 : LOST_NO_SEGMENT;
}

/* Reserves sequence numbers for the n requests of a call. */
static __always_inline struct filling reserve(struct queue *queue, struct call *call, __u32 n,
					      __u32 tid)
{
	__sync_fetch_and_add(&queue->posted, n);
	__u32 before = __sync_fetch_and_add(&queue->outstanding, n);
	struct filling filling = {
		.queue = queue,
		.wr = call->list,
		.sequence = __sync_fetch_and_add(&queue->tail, n),
		.now = call->entry_ns,
		.left = n,
		.outstanding = before,
		.tid = tid,
		.flags = call->returns ? ENTRY_RETURNS : 0,
		.untimed = call->untimed,
	};

	call->first = filling.sequence;
	call->count = n;
	note_poster(queue, tid);

	struct device *device = device_at(queue->device);
	if (device) {
		filling.port_bytes[0] = *(volatile __u64 *)&device->bytes[0];
		filling.port_bytes[1] = *(volatile __u64 *)&device->bytes[1];
	}
	return filling;
}

/* Others reserved at the same moment and took the memory. What is on the queue is
 * discarded with it; a new one begins. */
static __always_inline void break_queue(struct queue *queue)
{
	count(LOSS_QUEUE_BROKEN);
	end_queue(&queue->key, queue, END_BROKEN);
}

/* Reserves sequence numbers for the chain and writes its entries. */
static __always_inline void record_chain(struct queue *queue, struct call *call,
					 struct chain *chain, __u32 tid,
					 struct ibv_send_wr_head *first)
{
	__u32 n = chain->count;

	if (!n)
		return;
	__u32 why = hindrance(queue, chain);
	if (why) {
		give_up(queue, why, n);
		return;
	}
	struct filling filling = reserve(queue, call, n, tid);
	__u32 before = filling.outstanding;

	if (n == 1)
		fill_single(&filling, first);
	else
		LOOP(fill_request, &filling);
	if (filling.unreadable)
		lose_sync(queue);
	if (filling.broken)
		break_queue(queue);
	note_peak(queue, before + n);
}
