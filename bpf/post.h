/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "cost.h"
#include "cq.h"
#include "entry.h"
#include "loop.h"
#include "maps/entry_spans.h"
#include "maps/rejected.h"
#include "maps/traces_ctx_v1.h"
#include "queue.h"
#include "retire.h"
#include "series.h"
#include "sync.h"
#include "thread.h"

struct chain {
	__u64 wr;
	__u32 count;
	bool deeper, unreadable;
};

LOOP_BODY(count_request, struct chain)
{
	__u64 next;

	if (!state->wr)
		return STOP;
	if (state->count >= CHAIN_MAX) {
		state->deeper = true;
		return STOP;
	}
	if (bpf_probe_read_user(&next, sizeof(next), (void *)(state->wr + IBV_WR_NEXT))) {
		state->unreadable = true;
		return STOP;
	}
	state->count++;
	state->wr = next;
	return NEXT;
}

/* Counts the requests of a list that the traced process handed over. It may be
 * cyclic or lead anywhere. */
static __always_inline struct chain measure_chain(__u64 wr)
{
	struct chain chain = {.wr = wr, .count = some_zero};

	LOOP(count_request, &chain);
	return chain;
}

static __always_inline __u32 bytes_of(struct ibv_send_wr_head *wr)
{
	__u64 sum = 0;
	__u32 length;

	if (wr->num_sge > SGE_MAX)
		count(LOSS_SGE_TOO_DEEP);
	for (__u32 i = 0; i < SGE_MAX; i++) {
		if (i >= wr->num_sge)
			break;
		if (bpf_probe_read_user(&length, sizeof(length),
					(void *)(wr->sg_list + i * sizeof(struct ibv_sge) + 8))) {
			count(LOSS_READ_SGE);
			break;
		}
		sum += length;
	}
	return sum > 0xffffffff ? 0xffffffff : sum;
}

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
	__u32 overlapped;
	bool broken;
	bool unreadable;
};

static __always_inline void remember_span(struct queue *queue, __u64 sequence)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct trace_context *span = bpf_map_lookup_elem(&traces_ctx_v1, &thread);

	if (!span)
		return;
	struct entry_ref ref = {.generation = queue->generation, .sequence = sequence};
	bpf_map_update_elem(&entry_spans, &ref, span, BPF_ANY);
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

	bool readable = state->wr && bpf_probe_read_user(&wr, sizeof(wr), (void *)state->wr) == 0;
	state->wr = readable ? wr.next : 0;

	struct place place = {.kind = PLACE_NONE};
	if (provide_segment(queue, sequence))
		place = place_of(queue, sequence);
	if (place.kind != PLACE_ENTRY) {
		state->broken = true;
		return STOP;
	}
	struct entry *entry = place.entry;
	if (!readable) {
		state->unreadable = true;
		__sync_fetch_and_add(&queue->lost, 1);
		__sync_fetch_and_sub(&queue->outstanding, 1);
		count(LOST_READ_WR);
		__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_LOST));
		return NEXT;
	}

	bool signaled = wr.send_flags & IBV_SEND_SIGNALED;
	__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_WRITING));
	entry->wr_id = wr.wr_id;
	entry->posted_ns = state->now;
	entry->operation = wr.opcode <= OP_ATOMIC_WRITE ? wr.opcode : OP_UNKNOWN;
	entry->port_bytes = state->port_bytes[receives(entry->operation)];
	entry->returned = returned_tag(queue, sequence) | state->overlapped;
	entry->bytes = bytes_of(&wr);
	entry->tid = state->tid;
	entry->cpu = bpf_get_smp_processor_id();
	entry->outstanding = state->outstanding;
	entry->flags = signaled ? ENTRY_SIGNALED : 0;
	entry->skipped_at = 0;
	__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_LIVE));

	if (signaled)
		queue->signaled_seen = 1;
	if (signaled || queue->sig_all) {
		if (queue->sync != QUEUE_SYNCED)
			note_posted_id(queue, wr.wr_id);
		if (have_trace_contexts)
			remember_span(queue, sequence);
	}
	return NEXT;
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
	struct providing providing = {.queue = queue, .sequence = *(volatile __u64 *)&queue->tail};

	providing.end = providing.sequence + n;
	LOOP(provide_next, &providing);
	return !providing.failed;
}

/* Reserves sequence numbers for the chain and writes its entries. */
static __noinline void record_chain(struct queue *queue, struct call *call, struct chain *chain, __u32 tid,
				    bool overlapped)
{
	__u32 n = chain->count;
	__u64 used = *(volatile __u64 *)&queue->tail - *(volatile __u64 *)&queue->head;

	if (chain->deeper || used + n > DEPTH_LIMIT || !provide_segments(queue, n)) {
		give_up(queue, chain->deeper ? LOST_CHAIN_TOO_DEEP : used + n > DEPTH_LIMIT ? LOST_QUEUE_TOO_DEEP : LOST_NO_SEGMENT, n);
		return;
	}

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
		.overlapped = overlapped ? RETURNED_OVERLAPPED : 0,
	};
	call->first = filling.sequence;
	call->count = n;
	call->overlapped = filling.overlapped;
	if (overlapped)
		raise_to(&queue->overlap_mark, filling.sequence + n);

	struct device *device = device_at(queue->device);
	if (device) {
		filling.port_bytes[0] = *(volatile __u64 *)&device->bytes[0];
		filling.port_bytes[1] = *(volatile __u64 *)&device->bytes[1];
	}
	LOOP(fill_request, &filling);
	if (filling.unreadable)
		lose_sync(queue);
	if (filling.broken) {
		/* Others reserved at the same moment and took the memory. What
		 * is on the queue is discarded with it; a new one begins. */
		count(LOSS_QUEUE_BROKEN);
		end_queue(&queue->key, queue, END_BROKEN);
	}
	note_peak(queue, before + n);
}

static __always_inline void learn_qp(struct queue *queue, struct ibv_qp_head *qp)
{
	queue->send_cq = qp->send_cq;
	queue->recv_cq = qp->recv_cq;
	queue->srq = qp->srq;
	queue->qp_type = qp->qp_type;
}

/* Aligns a queue on which everything has visibly come to rest. */
static __always_inline void align_after_drain(struct queue *queue, struct caller *caller, __u64 now)
{
	struct cq_key key = {.incarnation = caller->incarnation, .cq = queue->send_cq, .tgid = caller->tgid};

	/* A queue of which no send was ever seen to complete was not seen to
	 * drain either. */
	if (queue->sync != QUEUE_UNSYNCED || now - queue->activity_ns < DRAIN_NS || !queue->completions)
		return;
	if (has_signaled(queue))
		return;
	struct cq *cq = bpf_map_lookup_elem(&cqs, &key);
	if (cq && cq->short_poll_ns > queue->activity_ns + DRAIN_NS)
		queue->sync = QUEUE_SYNCED;
}

static __always_inline void count_untracked(__u32 n)
{
	count_n(WQES_POSTED_UNTRACKED, n);
	count_n(LOST_UNTRACKED, n);
}

static __always_inline struct queue *queue_of_qp(struct caller *caller, struct ibv_qp_head *qp, __u32 *slot)
{
	struct queue_key key = queue_key_of(caller, qp->context, qp->qp_num);
	struct queue *queue = find_queue(&key, slot);

	if (!queue)
		queue = create_queue(&key, caller, qp->context, slot);
	if (queue && !queue->send_cq)
		learn_qp(queue, qp);
	return queue;
}

/* A post that is entered while another one of the same queue has not returned
 * may reach the hardware before it. */
static __always_inline bool enter_post(struct queue *queue, struct call *call)
{
	__u32 others = __sync_fetch_and_add(&queue->posting, 1);

	call->serial = __sync_fetch_and_add(&queue->calls, 1) + 1;
	return others != 0;
}

/* The queue of a call, NULL when it is not followed or its slot was reused. */
static __always_inline struct queue *queue_of_call(struct call *call)
{
	struct queue *queue = queue_at(call->slot);

	return queue && queue->generation == call->generation ? queue : NULL;
}

/* A call whose return was not seen is over when its thread posts again. */
static __always_inline void abandon_post(struct call *call)
{
	struct queue *queue = queue_of_call(call);

	if (call->active && queue)
		__sync_fetch_and_sub(&queue->posting, 1);
}

static __always_inline void post_entered(struct pt_regs *ctx, __u32 cookie)
{
	struct ibv_qp_head qp;
	struct thread *thread = this_thread();
	struct caller caller = current_caller();
	__u64 now = bpf_ktime_get_ns();
	__u64 wr = ARG2(ctx);

	if (!thread) {
		note_loss(&caller);
		return;
	}
	if (!observes(thread, cookie, HIT_ENTRY))
		return;
	struct call *call = &thread->post;
	struct call before = *call;
	if (!enter_call(call, ctx, cookie, now))
		return;
	abandon_post(&before);
	call->count = 0;
	call->slot = NO_SLOT;
	if (bpf_probe_read_user(&qp, sizeof(qp), (void *)ARG1(ctx))) {
		count(LOSS_READ_QP);
		note_loss(&caller);
		return;
	}

	__u32 slot = 0;
	struct queue *queue = queue_of_qp(&caller, &qp, &slot);
	struct chain chain = measure_chain(wr);
	if (!queue) {
		if (!is_excluded(&caller) && !is_ignored_device(device_of_context(qp.context)))
			count_untracked(chain.count);
		return;
	}
	if (is_ignored_device(queue->device))
		return;
	queue->library = cookie;
	if (queue->sync == QUEUE_NEW)
		decide_first_sync(queue, cookie);
	follow_losses(queue, loss_epoch_of(&caller));
	align_after_drain(queue, &caller, now);

	call->slot = slot;
	call->generation = queue->generation;
	call->list = wr;
	call->bad = ARG3(ctx);
	call->unread = chain.unreadable ? chain.wr : 0;
	bool overlapped = enter_post(queue, call);
	record_chain(queue, call, &chain, caller.tid, overlapped);
	queue->activity_ns = now;
	charge_work(thread, now);
}

struct returning {
	struct queue *queue;
	__u64 sequence;
	__u32 left;
	__u32 was, now;
};

LOOP_BODY(stamp_return, struct returning)
{
	if (state->left == 0)
		return STOP;
	__u64 sequence = state->sequence;
	state->left--;
	state->sequence++;

	struct place place = place_of(state->queue, sequence);
	if (place.kind == PLACE_ENTRY) {
		__u64 tag = returned_tag(state->queue, sequence);
		__sync_val_compare_and_swap(&place.entry->returned, tag | state->was, tag | state->now);
	}
	return NEXT;
}

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
	if (state->left == 0 || !state->wr ||
	    bpf_probe_read_user(&next, sizeof(next), (void *)(state->wr + IBV_WR_NEXT)))
		return STOP;
	state->left--;
	state->index++;
	state->wr = next;
	return NEXT;
}

LOOP_BODY(undo_request, struct returning)
{
	if (state->left == 0)
		return STOP;
	__u64 sequence = state->sequence;
	state->left--;
	state->sequence++;

	struct place place = place_of(state->queue, sequence);
	if (place.kind == PLACE_ENTRY &&
	    entry_moves(place.entry, entry_word(state->queue, sequence, ENTRY_LIVE), ENTRY_UNDONE)) {
		__sync_fetch_and_add(&state->queue->undone, 1);
		__sync_fetch_and_sub(&state->queue->outstanding, 1);
	}
	return NEXT;
}

/* A refused post took effect up to *bad_wr. That may be the pointer that ended
 * the list for us because nothing is there: then all of it took effect. */
static __noinline void undo_from_bad(struct queue *queue, struct call *call, __u64 bad)
{
	struct bad_search search = {.wr = call->list, .bad = bad, .left = call->count, .index = some_zero};

	if (bad)
		LOOP(find_bad, &search);
	if (!search.found) {
		count(LOSS_BAD_WR);
		lose_sync(queue);
		return;
	}
	struct returning undo = {
		.queue = queue,
		.sequence = call->first + search.index,
		.left = call->count - search.index,
	};
	LOOP(undo_request, &undo);
	advance_head(queue);
}

static __always_inline void count_rejected(struct queue *queue, int result)
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

static __always_inline void post_returned(int result, __u32 cookie)
{
	struct thread *thread = this_thread();
	struct caller caller = current_caller();

	if (!thread) {
		note_loss(&caller);
		return;
	}
	if (!observes(thread, cookie, HIT_RETURN))
		return;
	struct call *call = &thread->post;
	enum left left = leave_call(call, cookie);
	if (left == LEFT_UNKNOWN) {
		count(LOSS_RETURN_WITHOUT_ENTRY);
		note_loss(&caller);
	}
	if (left != LEFT)
		return;
	struct queue *queue = queue_of_call(call);
	if (!queue)
		return;

	__u64 now = bpf_ktime_get_ns();
	__u64 duration = now - call->entry_ns;
	bool overlapped = *(volatile __u64 *)&queue->calls != call->serial;
	struct returning stamp = {
		.queue = queue,
		.sequence = call->first,
		.left = call->count,
		.was = call->overlapped,
	};
	stamp.now = (duration > RETURNED_NS ? RETURNED_NS : duration ? duration : 1) |
		    (overlapped ? RETURNED_OVERLAPPED : call->overlapped);
	LOOP(stamp_return, &stamp);
	__u64 bad = 0;
	if (result != 0) {
		count_rejected(queue, result);
		bpf_probe_read_user(&bad, sizeof(bad), (void *)call->bad);
		if (call->count)
			undo_from_bad(queue, call, bad);
	}
	/* The list went on where we could not read, on a page that was not there
	 * at that moment, and the provider did not stop there. */
	if (call->unread && bad != call->unread)
		give_up(queue, LOST_READ_WR, 1);
	__sync_fetch_and_sub(&queue->posting, 1);
}
