/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "maps/baselines.h"
#include "measure.h"
#include "series.h"
#include "types.h"

/* What is usual for requests of one kind is not slow. Counting happens here, learning
 * in user space (internal/baseline). A kind is followed from its first request over
 * the threshold on; until a device has one, a fast request costs a look at the
 * device. */

/* Not static, as the next ones: to the verifier the result is any number then, and
 * not one way more for each. */
__noinline int size_class_of(__u64 bytes)
{
	__u32 class = 0;

	while (bytes && class < SIZE_CLASSES) {
		bytes >>= 2;
		class ++;
	}
	return class;
}

/* The bucket of an excess time in a baseline. */
__noinline int baseline_bucket_of(__u64 excess_ns)
{
	__u32 bucket = bucket_of(excess_ns) / 4 + BASELINE_BELOW;
	__u32 first = bucket_of(threshold_ns) / 4;

	if (bucket < first)
		return 0;
	return bucket - first < BASELINE_BUCKETS ? bucket - first : BASELINE_BUCKETS - 1;
}

/* How many elements are looked at for a kind, from the one that its hash names on. */
#define BASELINE_PROBES 16

/* The element of a kind, -1 without one. A new kind takes the first that is free.
 * User space may free one before it at that moment: then the kind is there twice, and
 * what is found of it is the first. */
__noinline int baseline_slot(__u64 kind, int create)
{
	__u32 first = kind * 0x9e3779b97f4a7c15ULL >> (64 - BASELINES_SHIFT);

	for (__u32 i = 0; i < BASELINE_PROBES; i++) {
		__u32 slot = (first + i) & (BASELINES - 1);
		struct baseline *baseline = bpf_map_lookup_elem(&baselines, &slot);

		if (baseline && *(volatile __u64 *)&baseline->kind == kind)
			return slot;
	}
	for (__u32 i = 0; create && i < BASELINE_PROBES; i++) {
		__u32 slot = (first + i) & (BASELINES - 1);
		struct baseline *baseline = bpf_map_lookup_elem(&baselines, &slot);

		if (!baseline)
			continue;
		__u64 before = __sync_val_compare_and_swap(&baseline->kind, 0, kind);
		if (before == 0 || before == kind)
			return slot;
	}
	return -1;
}

static __always_inline __u64 kind_of(struct queue *queue, struct unit *unit)
{
	__u32 peer = *(volatile __u32 *)&queue->peer;
	__u32 device = queue->device, operation = unit->operation;

	return (__u64)peer << KIND_PEER_SHIFT | KIND_USED | device << KIND_DEVICE_SHIFT |
	       operation << KIND_OPERATION_SHIFT | (__u32)size_class_of(unit->bytes);
}

static __always_inline struct baseline *baseline_of(struct queue *queue, struct unit *unit,
						    bool create)
{
	__u32 slot = baseline_slot(kind_of(queue, unit), create);

	return bpf_map_lookup_elem(&baselines, &slot);
}

static __always_inline void count_in(struct baseline *baseline, __u64 excess, __u32 weight)
{
	__u32 bucket = baseline_bucket_of(excess);

	__sync_fetch_and_add(&baseline->requests[bucket & (BASELINE_BUCKETS - 1)], weight);
}

/* Counts a request that was within the threshold, if its kind is followed. */
static __noinline void sample_fast(struct queue *queue, struct unit *unit, __u64 duration)
{
	if (bpf_get_prandom_u32() % FAST_SAMPLE || unit->status != IBV_WC_SUCCESS)
		return;
	struct baseline *baseline = baseline_of(queue, unit, false);

	if (baseline)
		count_in(baseline, duration > unit->busy_ns ? duration - unit->busy_ns : 0,
			 FAST_SAMPLE);
}

/* Whether a request over the threshold is over the limit of its kind, too. Failures
 * are over any: what they take says nothing of the others. */
static __noinline bool exceeds_usual(struct queue *queue, struct device *device, struct unit *unit,
				     __u64 excess)
{
	if (unit->status != IBV_WC_SUCCESS)
		return true;
	struct baseline *baseline = baseline_of(queue, unit, true);

	if (!baseline) {
		count(LOSS_BASELINES_FULL);
		return true;
	}
	if (!device->learns)
		device->learns = 1;
	count_in(baseline, excess, 1);
	__u64 learned = *(volatile __u64 *)&baseline->limit_ns;
	if (learned > threshold_ns)
		unit->limit_ns = learned;
	if (excess <= unit->limit_ns)
		return false;
	__sync_fetch_and_add(&baseline->slow, 1);
	return true;
}
