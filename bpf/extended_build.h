/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended.h"
#include "maps/builds.h"

/* Posting through ibv_qp_ex: wr_start, a builder for each request, and
 * wr_complete, which hands all of them to the device or none. The provider
 * holds the lock of the Send Queue from wr_start on, so chains of one queue
 * become known here in the order in which the device gets them. A chain that is
 * aborted was never posted. */

static __always_inline struct build *this_build(bool create)
{
	return bpf_task_storage_get(&builds, bpf_get_current_task_btf(), NULL,
				    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/* Something was called that does not belong to a chain that was seen to begin. */
static __always_inline void stray_call(struct build *build, struct observed *seen)
{
	struct caller caller = caller_of(seen->task);

	if (build && build->library != seen->cookie && !is_dropped(build->library)) {
		count_duplicate(seen->library, build->library);
		return;
	}
	count(LOSS_CHAIN_NOT_BEGUN);
	note_loss(&caller);
}

static __always_inline bool is_building(struct build *build, __u64 qp, __u32 cookie)
{
	return build && build->qp == qp && build->library == cookie;
}

static __always_inline void start_entered(struct pt_regs *ctx, struct observed *seen)
{
	struct build *build = this_build(true);
	struct caller caller = caller_of(seen->task);

	if (!build) {
		count(LOSS_NO_THREAD_STATE);
		note_loss(&caller);
		return;
	}
	if (build->qp && build->qp == ARG1(ctx) && build->library != seen->cookie &&
	    !is_dropped(build->library) && build->call.stack == STACK(ctx)) {
		count_duplicate(seen->library, build->library);
		return;
	}
	/* The end of the chain before was not seen. */
	if (build->qp) {
		count(LOSS_NESTED_CALL);
		note_loss(&caller);
	}
	build->call.stack = STACK(ctx);
	build->qp = ARG1(ctx);
	build->since = seen->library->attached_ns;
	build->library = seen->cookie;
	build->count = 0;
	build->unreadable = 0;
}

static __always_inline void request_built(struct pt_regs *ctx, struct observed *seen,
					  __u8 operation)
{
	struct build *build = this_build(false);
	struct {
		__u64 wr_id;
		__u32 flags;
		__u32 pad;
	} head;

	if (!is_building(build, ARG1(ctx), seen->cookie)) {
		stray_call(build, seen);
		return;
	}
	__u32 index = build->count++;
	if (index >= BUILT_MAX)
		return;
	struct built *built = &build->requests[index & (BUILT_MAX - 1)];
	if (bpf_probe_read_user(&head, sizeof(head), (void *)(ARG1(ctx) + IBV_QP_EX_WR_ID))) {
		build->unreadable = 1;
		return;
	}
	built->wr_id = head.wr_id;
	built->flags = head.flags & IBV_SEND_SIGNALED ? ENTRY_SIGNALED : 0;
	built->operation = operation <= OP_ATOMIC_WRITE ? operation : OP_UNKNOWN;
	built->bytes = operation == OP_ATOMIC_WRITE ? 8 : 0;
	built->lkey = 0;
}

struct summing {
	__u64 list;
	__u64 sum;
	__u32 lkey; /* of the first element */
	__u32 left;
	__u32 wide; /* ibv_data_buf, whose length is a size_t */
	bool unreadable;
};

LOOP_BODY(sum_lengths, struct summing)
{
	__u64 word = 0;

	if (state->left == 0)
		return STOP;
	state->left--;
	if (bpf_probe_read_user(&word, sizeof(word), (void *)(state->list + 8))) {
		state->unreadable = true;
		return STOP;
	}
	if (!state->wide && !state->sum && !state->lkey)
		state->lkey = word >> 32;
	state->sum += state->wide ? word : (__u32)word;
	state->list += sizeof(struct ibv_sge);
	return NEXT;
}

/* The bytes in the lower half, the key of the first element in the upper one. */
static __noinline __u64 memory_of_list(__u64 n, __u64 list, bool wide)
{
	struct summing summing = {
		.list = list, .sum = some_zero, .left = n > SGE_MAX ? SGE_MAX : n, .wide = wide
	};

	if (n > SGE_MAX)
		count(LOSS_SGE_TOO_DEEP);
	LOOP(sum_lengths, &summing);
	if (summing.unreadable)
		count(LOSS_READ_SGE);
	return (__u64)summing.lkey << 32 | (summing.sum > 0xffffffff ? 0xffffffff : summing.sum);
}

/* The memory of the request that was built last. */
static __always_inline void memory_set(struct pt_regs *ctx, __u32 cookie, __u32 role)
{
	struct build *build = this_build(false);
	__u64 memory;

	if (!is_building(build, ARG1(ctx), cookie) || !build->count || build->count > BUILT_MAX)
		return;
	switch (role) {
	case ROLE_SET_SGE:
		memory = ARG2(ctx) << 32 | (__u32)ARG4(ctx);
		break;
	case ROLE_SET_INLINE_DATA:
		memory = (__u32)ARG3(ctx);
		break;
	default:
		memory = memory_of_list(ARG2(ctx), ARG3(ctx), role == ROLE_SET_INLINE_DATA_LIST);
		break;
	}
	struct built *built = &build->requests[(build->count - 1) & (BUILT_MAX - 1)];
	built->bytes = memory;
	built->lkey = memory >> 32;
}

static __always_inline void abort_entered(struct pt_regs *ctx, struct observed *seen)
{
	struct build *build = this_build(false);

	if (is_building(build, ARG1(ctx), seen->cookie))
		build->qp = 0;
	else
		stray_call(build, seen);
}
