/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/queue_index.h"
#include "types.h"

/* Takes the queue out of use; its slot and what is outstanding on it are user
 * space's to account for, see maps/queues.h. */
static __always_inline void end_queue(struct queue_key *key, struct queue *queue, __u32 reason)
{
	if (bpf_map_delete_elem(&queue_index, key))
		return; /* Somebody else did, just now. */
	queue->end = reason;
	queue->ended_ns = bpf_ktime_get_ns();
}
