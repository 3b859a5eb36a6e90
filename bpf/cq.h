/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "counters.h"
#include "maps/cqs.h"
#include "process.h"

/* What is known of a CQ; NULL when there is no room for another one. */
static __always_inline struct cq *cq_of(struct caller *caller, __u64 address)
{
	struct cq_key key = {.incarnation = caller->incarnation, .cq = address, .tgid = caller->tgid};
	struct cq *cq = bpf_map_lookup_elem(&cqs, &key);

	if (cq)
		return cq;
	struct cq fresh = {};
	if (bpf_map_update_elem(&cqs, &key, &fresh, BPF_NOEXIST) < 0)
		count(LOSS_CQ_MAP_FULL);
	return bpf_map_lookup_elem(&cqs, &key);
}
