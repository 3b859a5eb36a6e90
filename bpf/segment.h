/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "maps/free_segments.h"
#include "maps/segments.h"

/* A directory slot holds the lap of the ring in its upper half and the
 * segment's index + 1 in its lower one; a lower half of zero: no segment. A
 * segment leaves its slot only after the head has passed every one of its
 * entries, and the head passes no entry that was reserved but not yet written:
 * no writer is ever inside a freed segment. */
#define NO_SLOT 0xffffffff

static __always_inline __u32 directory_index(__u64 sequence)
{
	return (sequence >> SEGMENT_SHIFT) % DIRECTORY_SLOTS;
}

static __always_inline __u32 directory_lap(__u64 sequence)
{
	return ((sequence / QUEUE_DEPTH) & 0xffff) << 16;
}

enum place_kind {
	PLACE_NONE,
	PLACE_ENTRY,
};

struct place {
	struct entry *entry;
	enum place_kind kind;
};

static __always_inline struct place place_in(__u32 slot_value, __u64 sequence)
{
	struct place place = { .kind = PLACE_NONE };

	if ((slot_value & 0xffff0000) != directory_lap(sequence) || (slot_value & 0xffff) == 0)
		return place;
	__u32 index = (slot_value & 0xffff) - 1;
	struct segment *segment = bpf_map_lookup_elem(&segments, &index);
	if (!segment)
		return place;
	place.entry = &segment->entries[sequence % SEGMENT_ENTRIES];
	place.kind = PLACE_ENTRY;
	return place;
}

static __always_inline struct place place_of(struct queue *queue, __u64 sequence)
{
	return place_in(*(volatile __u32 *)&queue->directory[directory_index(sequence)], sequence);
}

/* Gives back the segment that ends before the sequence number, once. */
static __always_inline void release_segment_before(struct queue *queue, __u64 sequence)
{
	__u64 last = sequence - 1;
	__u32 *slot = &queue->directory[directory_index(last)];
	__u32 value = *(volatile __u32 *)slot;

	if ((value & 0xffff) == 0 || (value & 0xffff0000) != directory_lap(last))
		return;
	if (__sync_val_compare_and_swap(slot, value, 0) != value)
		return;
	__u32 index = (value & 0xffff) - 1;
	bpf_map_push_elem(&free_segments, &index, BPF_ANY);
}

/* Makes sure that there is memory for a sequence number; false when there is
 * none, or its slot is still in use by an earlier lap. A thread may have stalled
 * since it read the sequence number from the tail: once the head is past the
 * segment nobody else would give it back, and the next lap found its slot in use
 * for ever. */
static __always_inline bool provide_segment(struct queue *queue, __u64 sequence)
{
	__u32 *slot = &queue->directory[directory_index(sequence)];
	__u32 value = *(volatile __u32 *)slot;

	if ((value & 0xffff) == 0) {
		__u32 index = 0;
		if (bpf_map_pop_elem(&free_segments, &index))
			return false;
		__u32 mine = directory_lap(sequence) | (index + 1);
		__u32 found = __sync_val_compare_and_swap(slot, value, mine);

		if (found == value) {
			__u64 next = (sequence | (SEGMENT_ENTRIES - 1)) + 1;

			if (*(volatile __u64 *)&queue->head >= next)
				release_segment_before(queue, next);
			return true;
		}
		bpf_map_push_elem(&free_segments, &index, BPF_ANY);
		value = found;
	}
	return (value & 0xffff) && (value & 0xffff0000) == directory_lap(sequence);
}
