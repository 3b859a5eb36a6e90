/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/queue_index.h"
#include "maps/queues.h"
#include "types.h"

static __always_inline struct queue_key queue_key_of(struct caller *caller, __u64 object,
						     __u32 qp_num)
{
	struct queue_key key = {
		.incarnation = caller->incarnation,
		.object = object,
		.tgid = caller->tgid,
		.qp_num = qp_num,
	};
	return key;
}

static __always_inline struct queue *queue_at(__u32 slot)
{
	return bpf_map_lookup_elem(&queues, &slot);
}

static __always_inline struct queue *find_queue(struct queue_key *key, __u32 *slot)
{
	__u32 *known = bpf_map_lookup_elem(&queue_index, key);

	if (!known)
		return NULL;
	*slot = *known;
	return queue_at(*slot);
}
