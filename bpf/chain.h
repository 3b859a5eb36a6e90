/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "counters.h"
#include "loop.h"
#include "verbs_reader.h"

/* Lists of work requests that were handed over. Those of a process may be cyclic
 * or lead anywhere. */

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
	if (!read_next_wr(&next, state->wr)) {
		state->unreadable = true;
		return STOP;
	}
	state->count++;
	state->wr = next;
	return NEXT;
}

/* Counts the requests of a list whose first one points to next. */
static __always_inline struct chain measure_chain(__u64 next)
{
	struct chain chain = { .wr = next, .count = some_zero };

	chain.count++;
	if (next)
		LOOP(count_request, &chain);
	return chain;
}

static __always_inline struct chain unreadable_chain(__u64 wr)
{
	struct chain chain = { .wr = wr, .unreadable = wr != 0 };

	return chain;
}

/* The memory of a request: its size, and the local key of where it begins, 0 when
 * there is none. */
struct memory {
	__u32 bytes;
	__u32 lkey;
};

/* The length of a scatter/gather element in the lower half, the key beside it in
 * the upper one: one read has both. */
static __always_inline __u64 read_sge(__u64 sge)
{
	__u64 word = 0;

	if (!read_sge_word(&word, sge + __builtin_offsetof(struct ibv_sge, length)))
		count(LOSS_READ_SGE);
	return word;
}
_Static_assert(__builtin_offsetof(struct ibv_sge, lkey) ==
		       __builtin_offsetof(struct ibv_sge, length) + 4,
	       "one word");

static __always_inline struct memory memory_of(struct ibv_send_wr_head *wr)
{
	struct memory memory = {};

	if (wr->num_sge == 0)
		return memory;
	__u64 word = read_sge(wr->sg_list);
	__u64 sum = (__u32)word;
	/* The keys of inline data are ignored. */
	if (!(wr->send_flags & IBV_SEND_INLINE))
		memory.lkey = word >> 32;
	if (wr->num_sge > SGE_MAX)
		count(LOSS_SGE_TOO_DEEP);
	for (__u32 i = 1; i < SGE_MAX; i++) {
		if (i >= wr->num_sge)
			break;
		sum += (__u32)read_sge(wr->sg_list + i * sizeof(struct ibv_sge));
	}
	memory.bytes = sum > 0xffffffff ? 0xffffffff : sum;
	return memory;
}
