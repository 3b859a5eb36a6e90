/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/kernel_calls.h"
#include "maps/kernel_scratch.h"
#include "process.h"
#include "segment.h"
#include "thread.h"

/* Calls of a driver's verbs. They run in threads and in interrupts, are preempted
 * and interrupt each other, so that nothing of a thread or of a CPU is theirs.
 *
 * The kernel skips a program that would interrupt itself on a CPU. Every return is
 * therefore seen by two programs, one after the other. The first one that is run
 * follows it and leaves word for the other; so the second makes up for the first
 * where that was skipped. And a return whose entry was skipped has what it needs
 * where its arguments are known (fexit). */

enum call_kind {
	CALL_POST_SEND,
	CALL_POST_RECEIVE,
	CALL_POST_SHARED_RECEIVE,
	CALL_POLL,
};

/* Which of the programs on a return it is. */
enum exit_program {
	EXIT_FIRST,
	EXIT_SECOND,
	EXIT_ONLY, /* of a kprobe: the kernel skips either or none */
};

/* What call.active says of a call of the kernel. */
enum call_phase {
	CALL_ENTERED = 1,
	CALL_FOLLOWED, /* and on: plus the exit_program that followed its return */
};

/* Returns that the second program followed, because the first was skipped: read
 * by user space. */
volatile __u64 made_up = 0;

/* A probe that was reached. */
struct kernel_hit {
	__u64 frame;
	__u64 object, list, third;
	__u32 cookie;
	enum call_kind kind;
	int result;
	bool has_arguments;
	enum exit_program program;
};

static __always_inline struct scratch *take_scratch(void)
{
	__u32 first = bpf_get_smp_processor_id() * SCRATCH_PER_CPU % SCRATCH_MOST;

	for (__u32 i = 0; i < SCRATCH_PER_CPU; i++) {
		__u32 index = first + i;
		struct scratch *scratch = bpf_map_lookup_elem(&kernel_scratch, &index);

		if (scratch && __sync_val_compare_and_swap(&scratch->taken, 0, 1) == 0)
			return scratch;
	}
	count(LOSS_NO_THREAD_STATE);
	note_common_loss();
	return NULL;
}

static __always_inline void give_back_scratch(struct scratch *scratch)
{
	__sync_lock_test_and_set(&scratch->taken, 0);
}

static __always_inline void fill_call(struct call *call, const struct kernel_hit *hit, __u64 now)
{
	call->entry_ns = now;
	call->stack = hit->frame;
	call->instruction = 0;
	call->object = hit->object;
	call->list = hit->list;
	call->bad = hit->third;
	call->first = 0;
	call->generation = 0;
	call->unread = 0;
	call->slot = NO_SLOT;
	call->count = 0;
	call->cookie = hit->cookie;
	call->active = CALL_ENTERED;
	call->function = hit->kind;
	call->returns = 1;
	call->refused = 0;
	call->untimed = 0;
}

/* Keeps a call until its return. */
static __always_inline void keep_kernel_call(const struct kernel_hit *hit, const struct call *call)
{
	__u64 frame = hit->frame;
	struct call *before = bpf_map_lookup_elem(&kernel_calls, &frame);

	/* A call that was here is over, and its return was not seen. */
	if (before && before->active == CALL_ENTERED) {
		count(LOSS_NESTED_CALL);
		note_common_loss();
	}
	if (!bpf_map_update_elem(&kernel_calls, &frame, call, BPF_ANY))
		return;
	count(LOSS_NO_THREAD_STATE);
	note_common_loss();
}

enum kernel_return {
	RETURN_NOT_OURS, /* followed by the other program, or its entry was not kept */
	RETURN_FOLLOWED, /* the call is in scratch, as it was kept */
	RETURN_ALONE,	 /* its entry was not seen */
};

/* Leaves word for the other program, which comes after this one or is skipped. */
static __always_inline __u32 followed_by(enum exit_program program)
{
	return CALL_FOLLOWED + program;
}

/* Whether this program is to follow a return. What it left itself is of an earlier
 * call at this place: the other program was skipped. */
static __always_inline enum kernel_return find_kernel_call(const struct kernel_hit *hit,
							   struct call *into)
{
	__u64 frame = hit->frame;
	struct call *call = bpf_map_lookup_elem(&kernel_calls, &frame);
	bool is_known = call && call->cookie == hit->cookie && call->function == hit->kind;

	if (is_known && call->active == CALL_ENTERED) {
		*into = *call;
		if (hit->program == EXIT_ONLY)
			bpf_map_delete_elem(&kernel_calls, &frame);
		else
			call->active = followed_by(hit->program);
		return RETURN_FOLLOWED;
	}
	if (is_known && call->active != followed_by(hit->program)) {
		bpf_map_delete_elem(&kernel_calls, &frame);
		return RETURN_NOT_OURS;
	}
	return hit->has_arguments ? RETURN_ALONE : RETURN_NOT_OURS;
}

/* Leaves word that a call without a known entry was followed. */
static __always_inline void mark_followed(const struct kernel_hit *hit, struct call *call)
{
	call->active = followed_by(hit->program);
	keep_kernel_call(hit, call);
}
