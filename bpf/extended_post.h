/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_build.h"

/* What was built becomes outstanding at wr_complete. The return of that is probed
 * wherever its entry is: it tells whether the chain was refused, and of what is
 * refused none took effect (ibv_wr_post(3)). */

struct built_filling {
	struct filling filling;
	struct build *build;
	__u32 index;
};

LOOP_BODY(fill_built, struct built_filling)
{
	struct filling *filling = &state->filling;
	__u64 sequence = filling->sequence;

	if (filling->left == 0)
		return STOP;
	struct built *built = &state->build->requests[state->index & (BUILT_MAX - 1)];
	state->index++;
	filling->left--;
	filling->sequence++;
	filling->outstanding++;

	struct place place = reserved_place(filling->queue, sequence);
	if (place.kind != PLACE_ENTRY) {
		filling->broken = true;
		return STOP;
	}
	write_request(filling, filling->queue, sequence, place.entry, built);
	return NEXT;
}

/* As record_chain, of what was built. */
static __noinline void record_built(struct queue *queue, struct build *build, __u32 tid)
{
	struct chain chain = { .count = build->count, .deeper = build->count > BUILT_MAX };
	__u32 n = chain.count;

	if (!n)
		return;
	__u32 why = build->unreadable ? LOST_READ_WR : hindrance(queue, &chain);
	if (why) {
		give_up(queue, why, n);
		return;
	}
	struct built_filling state = {
		.filling = reserve(queue, &build->call, n, tid),
		.build = build,
		.index = some_zero,
	};
	__u32 before = state.filling.outstanding;

	state.filling.flags |= ENTRY_BUILT;
	LOOP(fill_built, &state);
	if (state.filling.broken)
		break_queue(queue);
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

/* Follows a chain on its queue. */
static __always_inline void follow_built(struct queue *queue, __u32 slot, struct observed *seen,
					 struct build *build)
{
	struct thread *thread = seen->thread;
	struct call *call = &build->call;

	queue->library = call->cookie;
	if (queue->sync == QUEUE_NEW)
		decide_first_sync(queue, seen->library);
	follow_losses(queue, &thread->caller);
	align_after_drain(queue, &thread->caller, call->entry_ns);
	if (queue->sync != QUEUE_SYNCED)
		watch_unsynced(&thread->caller, queue, call->object);

	call->slot = slot;
	call->generation = queue->generation;
	record_built(queue, build, thread->caller.tid);
	queue->activity_ns = call->entry_ns;
}

static __always_inline void complete_entered(struct pt_regs *ctx, struct observed *seen)
{
	struct thread *thread = seen->thread;
	struct build *build = this_build(false);
	struct ibv_qp_head qp;
	__u64 now = bpf_ktime_get_ns();
	__u32 slot = 0;

	if (!is_building(build, ARG1(ctx), seen->cookie) || !build->since ||
	    build->since != seen->library->attached_ns) {
		stray_call(build, seen);
		return;
	}
	build->qp = 0;
	settle_post(thread);
	struct call *call = &build->call;
	if (!enter_call(call, ctx, seen->cookie, seen->library, now, true))
		return;
	thread->caller = caller_of(seen->task);
	call->object = ARG1(ctx);
	call->count = 0;
	call->slot = NO_SLOT;
	if (bpf_probe_read_user(&qp, sizeof(qp), (void *)call->object)) {
		count(LOSS_READ_QP);
		note_loss(&thread->caller);
		return;
	}
	struct queue *queue = queue_of_qp(thread, &thread->caller, &qp, &slot);
	if (!queue) {
		if (!is_excluded(&thread->caller) &&
		    !is_ignored_device(device_of_context(qp.context)))
			count_untracked(build->count);
		return;
	}
	if (!is_ignored_device(queue->device))
		follow_built(queue, slot, seen, build);
	charge_work(thread, now);
}

static __always_inline void complete_returned(int result, struct observed *seen)
{
	struct build *build = this_build(false);

	if (!build)
		return;
	struct call *call = &build->call;
	/* What was entered before a gap may have returned in it. */
	if (leave_call(call, seen->cookie) != LEFT || call->entry_ns <= seen->library->attached_ns)
		return;
	struct queue *queue = queue_of_call(call);
	if (!queue)
		return;
	stamp_entries(queue, call);
	if (result == 0)
		return;
	count_rejected(queue, result);
	struct undoing undo = { .queue = queue, .sequence = call->first, .left = call->count };
	LOOP(undo_request, &undo);
	advance_head(queue);
}
