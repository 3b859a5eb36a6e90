/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "counters.h"
#include "maps/cqs.h"
#include "process.h"
#include "verbs_reader.h"

static __always_inline struct cq_key cq_key_of(struct caller *caller, __u64 address)
{
	struct cq_key key = { .incarnation = caller->incarnation,
			      .cq = address,
			      .tgid = cq_owner(caller->tgid) };
	return key;
}

/* Notes who polls a CQ. Completions that several threads found are seen in the
 * order in which their polls return, which need not be that of the CQ. */
static __always_inline void note_poller(struct cq *cq, __u32 tid, __u64 entry_ns)
{
	cq->polled_ns = entry_ns;
	if (!cq->poller)
		__sync_val_compare_and_swap(&cq->poller, 0, tid);
	if (cq->poller != tid && !cq->shared)
		cq->shared = 1;
}

/* What is known of a CQ; NULL when there is no room for another one. */
static __always_inline struct cq *cq_of(struct caller *caller, __u64 address)
{
	struct cq_key key = cq_key_of(caller, address);
	struct cq *cq = bpf_map_lookup_elem(&cqs, &key);

	if (cq)
		return cq;
	struct cq fresh = {};
	bpf_map_update_elem(&cqs, &key, &fresh, BPF_NOEXIST);
	/* Another thread may have been faster: that is no loss. */
	cq = bpf_map_lookup_elem(&cqs, &key);
	if (!cq)
		count(LOSS_CQ_MAP_FULL);
	return cq;
}
