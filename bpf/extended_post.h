/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_build.h"

/* What was built becomes outstanding at wr_complete. */

struct built_filling {
	struct queue *queue;
	struct build *build;
	__u64 sequence;
	__u64 now;
	__u64 port_bytes[2];
	__u32 index, left;
	__u32 outstanding;
	__u32 tid;
	__u32 overlapped;
	bool broken;
};

LOOP_BODY(fill_built, struct built_filling)
{
	struct queue *queue = state->queue;
	__u64 sequence = state->sequence;

	if (state->left == 0)
		return STOP;
	struct built *built = &state->build->requests[state->index & (BUILT_MAX - 1)];
	state->left--;
	state->index++;
	state->sequence++;
	state->outstanding++;

	struct place place = { .kind = PLACE_NONE };
	if (provide_segment(queue, sequence))
		place = place_of(queue, sequence);
	if (place.kind != PLACE_ENTRY) {
		state->broken = true;
		return STOP;
	}
	struct entry *entry = place.entry;
	__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_WRITING));
	entry->wr_id = built->wr_id;
	entry->posted_ns = state->now;
	entry->operation = built->operation;
	entry->port_bytes = state->port_bytes[receives(built->operation)];
	entry->returned = returned_tag(queue, sequence) | state->overlapped;
	entry->bytes = built->bytes;
	entry->tid = state->tid;
	entry->cpu = bpf_get_smp_processor_id();
	entry->outstanding = state->outstanding;
	entry->flags = built->flags;
	entry->skipped_at = 0;
	__sync_lock_test_and_set(&entry->word, entry_word(queue, sequence, ENTRY_LIVE));

	if (built->flags & ENTRY_SIGNALED)
		queue->signaled_seen = 1;
	if ((built->flags & ENTRY_SIGNALED) || queue->sig_all) {
		if (queue->sync != QUEUE_SYNCED)
			note_posted_id(queue, built->wr_id);
		if (have_trace_contexts)
			remember_span(queue, sequence);
	}
	return NEXT;
}

/* As record_chain, of what was built. */
static __noinline void record_built(struct queue *queue, struct build *build, __u32 tid,
				    bool overlapped)
{
	struct call *call = &build->call;
	__u32 n = build->count;
	__u64 used = *(volatile __u64 *)&queue->tail - *(volatile __u64 *)&queue->head;

	__u32 why = build->unreadable ? LOST_READ_WR
		    : n > BUILT_MAX   ? LOST_CHAIN_TOO_DEEP
				      : LOST_QUEUE_TOO_DEEP;

	if (build->unreadable || n > BUILT_MAX || used + n > DEPTH_LIMIT) {
		give_up(queue, why, n);
		return;
	}
	if (!provide_segments(queue, n)) {
		give_up(queue, LOST_NO_SEGMENT, n);
		return;
	}
	__sync_fetch_and_add(&queue->posted, n);
	__u32 before = __sync_fetch_and_add(&queue->outstanding, n);
	struct built_filling filling = {
		.queue = queue,
		.build = build,
		.sequence = __sync_fetch_and_add(&queue->tail, n),
		.now = call->entry_ns,
		.index = some_zero,
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
	LOOP(fill_built, &filling);
	if (filling.broken) {
		count(LOSS_QUEUE_BROKEN);
		end_queue(&queue->key, queue, END_BROKEN);
	}
	note_peak(queue, before + n);
}

/* A queue of which not every function is probed is not aligned: requests or
 * completions of it go by unseen. */
static __noinline void watch_unsynced(struct caller *caller, struct queue *queue, __u64 qp_address)
{
	if (!is_qp_watched(caller, qp_address, queue->key.object) ||
	    !is_cq_watched(caller, queue->send_cq, queue->key.object))
		lose_sync(queue);
}

static __always_inline void complete_entered(struct pt_regs *ctx, __u32 library)
{
	struct build *build = this_build(false);
	struct caller caller = current_caller();
	struct ibv_qp_head qp;
	__u64 now = bpf_ktime_get_ns();
	__u64 qp_address = ARG1(ctx);
	__u32 slot = 0;

	if (!is_building(build, qp_address, library) || !build->since ||
	    build->since != observed_since(library)) {
		stray_call(build, library);
		return;
	}
	build->qp = 0;
	struct call *call = &build->call;
	struct call before = *call;
	if (!enter_call(call, ctx, library, now))
		return;
	abandon_post(&before);
	call->count = 0;
	call->slot = NO_SLOT;
	if (bpf_probe_read_user(&qp, sizeof(qp), (void *)qp_address)) {
		count(LOSS_READ_QP);
		note_loss(&caller);
		return;
	}
	struct queue *queue = queue_of_qp(&caller, &qp, &slot);
	if (!queue) {
		if (!is_excluded(&caller) && !is_ignored_device(device_of_context(qp.context)))
			count_untracked(build->count);
		return;
	}
	if (is_ignored_device(queue->device))
		return;
	queue->library = library;
	if (queue->sync == QUEUE_NEW)
		decide_first_sync(queue, library);
	follow_losses(queue, loss_epoch_of(&caller));
	align_after_drain(queue, &caller, now);
	if (queue->sync != QUEUE_SYNCED)
		watch_unsynced(&caller, queue, qp_address);

	call->slot = slot;
	call->generation = queue->generation;
	bool overlapped = enter_post(queue, call);
	record_built(queue, build, caller.tid, overlapped);
	queue->activity_ns = now;
}

static __always_inline void complete_returned(int result, __u32 library)
{
	struct build *build = this_build(false);

	if (!build)
		return;
	struct call *call = &build->call;
	if (leave_call(call, library) != LEFT)
		return;
	struct queue *queue = queue_of_call(call);
	if (!queue)
		return;
	__u64 duration = bpf_ktime_get_ns() - call->entry_ns;
	bool overlapped = *(volatile __u64 *)&queue->calls != call->serial;
	struct returning returning = {
		.queue = queue,
		.sequence = call->first,
		.left = call->count,
		.was = call->overlapped,
	};
	returning.now = (duration > RETURNED_NS ? RETURNED_NS
			 : duration		? duration
						: 1) |
			(overlapped ? RETURNED_OVERLAPPED : call->overlapped);
	LOOP(stamp_return, &returning);
	if (result != 0) {
		/* None took effect (ibv_wr_post(3)). */
		count_rejected(queue, result);
		returning.sequence = call->first;
		returning.left = call->count;
		LOOP(undo_request, &returning);
		advance_head(queue);
	}
	__sync_fetch_and_sub(&queue->posting, 1);
}
