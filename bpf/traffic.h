/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "types.h"

/* What went over a queue. User space adds up the queues that lead to one peer;
 * a series does not know peers. */

static __always_inline void add_queue_bytes(struct queue *queue, __u64 bytes)
{
	if (bytes)
		__sync_fetch_and_add(&queue->bytes, bytes);
}

/* The bucket is one of a series. A count wraps; user space takes differences. */
static __always_inline void add_queue_duration(struct queue *queue, __u32 bucket)
{
	__sync_fetch_and_add(&queue->durations[bucket / 4 & (QUEUE_BUCKETS - 1)], 1);
}
