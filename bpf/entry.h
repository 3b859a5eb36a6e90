/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "segment.h"

/* The owner tag of an entry: 24 bits of the queue's generation and 32 of the
 * sequence number. It is compared together with the state, so that a reader
 * never takes an entry for one of another queue, lap or life. */
static __always_inline __u64 entry_word(struct queue *queue, __u64 sequence, __u64 state)
{
	return (queue->generation & 0xffffff) << 40 | (sequence & 0xffffffff) << 8 | state;
}

/* entry.returned: the upper half is a tag, the lower one nanoseconds. */
#define RETURNED_NS 0xffffffffu

/* The tag of entry.returned, apart for neighbours in time and in the pool. */
static __always_inline __u64 returned_tag(struct queue *queue, __u64 sequence)
{
	return (sequence * 0x9e3779b1 + (queue->generation & 0xffffff) * 0x85ebca6b) << 32;
}

static __always_inline bool entry_moves(struct entry *entry, __u64 live, __u64 state)
{
	return __sync_val_compare_and_swap(&entry->word, live, (live & ~0xffULL) | state) == live;
}

static __always_inline __u64 entry_now(struct entry *entry)
{
	return *(volatile __u64 *)&entry->word;
}
