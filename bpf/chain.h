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
	struct chain chain = {.wr = next, .count = some_zero};

	chain.count++;
	if (next)
		LOOP(count_request, &chain);
	return chain;
}

static __always_inline struct chain unreadable_chain(__u64 wr)
{
	struct chain chain = {.wr = wr, .unreadable = wr != 0};

	return chain;
}

static __always_inline __u32 length_at(__u64 sge)
{
	__u32 length = 0;

	if (!read_sge_length(&length, sge))
		count(LOSS_READ_SGE);
	return length;
}

static __always_inline __u32 bytes_of(struct ibv_send_wr_head *wr)
{
	__u64 sum = 0;

	if (wr->num_sge == 0)
		return 0;
	if (wr->num_sge == 1)
		return length_at(wr->sg_list);
	if (wr->num_sge > SGE_MAX)
		count(LOSS_SGE_TOO_DEEP);
	for (__u32 i = 0; i < SGE_MAX; i++) {
		if (i >= wr->num_sge)
			break;
		sum += length_at(wr->sg_list + i * sizeof(struct ibv_sge));
	}
	return sum > 0xffffffff ? 0xffffffff : sum;
}
