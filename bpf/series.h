/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "knobs.h"
#include "maps/empty_series.h"
#include "maps/aggregates.h"

/* The bucket whose (lower, upper] holds the duration: the number of upper
 * edges below it. */
static __always_inline __u32 bucket_of(__u64 duration_ns)
{
	__u32 low = 0;

	for (__u32 step = HISTOGRAM_BUCKETS / 2; step; step /= 2)
		if (histogram_edges[(low + step - 1) & (HISTOGRAM_BUCKETS - 1)] < duration_ns)
			low += step;
	return low & (HISTOGRAM_BUCKETS - 1);
}

static __noinline struct series *new_series(struct series_key *key)
{
	__u32 zero = 0;
	struct series *empty = bpf_map_lookup_elem(&empty_series, &zero);

	if (empty)
		bpf_map_update_elem(&aggregates, key, empty, BPF_NOEXIST);
	struct series *series = bpf_map_lookup_elem(&aggregates, key);
	if (!series)
		count(LOSS_SERIES_FULL);
	return series;
}

static __always_inline struct series *series_of(struct series_key *key)
{
	struct series *known = bpf_map_lookup_elem(&aggregates, key);

	return known ? known : new_series(key);
}

static __always_inline void raise_to(__u64 *value, __u64 candidate)
{
	/* Three tries: a lost race here costs the exactness of an extreme. */
	for (int i = 0; i < 3; i++) {
		__u64 now = *(volatile __u64 *)value;

		if (candidate <= now || __sync_val_compare_and_swap(value, now, candidate) == now)
			return;
	}
}

static __always_inline void lower_to(__u64 *value, __u64 candidate)
{
	for (int i = 0; i < 3; i++) {
		__u64 now = *(volatile __u64 *)value;

		if ((now && candidate >= now) ||
		    __sync_val_compare_and_swap(value, now, candidate) == now)
			return;
	}
}

static __always_inline void add_completion(struct series *series, __u64 retired, __u64 bytes)
{
	__sync_fetch_and_add(&series->completions, 1);
	if (retired)
		__sync_fetch_and_add(&series->retired, retired);
	if (bytes)
		__sync_fetch_and_add(&series->bytes, bytes);
}

static __always_inline void add_duration(struct series *series, __u64 duration_ns, __u32 bucket)
{
	__sync_fetch_and_add(&series->sum_ns, duration_ns);
	__sync_fetch_and_add(&series->buckets[bucket & (HISTOGRAM_BUCKETS - 1)], 1);
	raise_to(&series->max_ns, duration_ns);
	lower_to(&series->min_ns, duration_ns);
}
