/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/registered.h"
#include "maps/regions.h"

/* The sums over the memory regions of a process, kept in step with the regions:
 * a region that found no room is not among those that live. */

volatile __u64 registered_full = 0;
volatile __u64 regions_full = 0;

static __always_inline struct registrations *registrations_of(struct registrations_key *key)
{
	struct registrations *sums = bpf_map_lookup_elem(&registered, key);
	struct registrations none = {};

	if (sums)
		return sums;
	bpf_map_update_elem(&registered, key, &none, BPF_NOEXIST);
	sums = bpf_map_lookup_elem(&registered, key);
	if (!sums)
		__sync_fetch_and_add(&registered_full, 1);
	return sums;
}

static __always_inline struct registrations_key owner_of(struct region *region, __u32 device)
{
	struct registrations_key key = {
		.incarnation = region->incarnation,
		.tgid = region->tgid,
		.device = device,
		.kind = region->kind,
	};
	return key;
}

/* The sums of a region's owner, if there are any: those of a process that is gone
 * are not made anew. */
static __always_inline struct registrations *sums_of(struct region *region, __u32 device)
{
	struct registrations_key key = owner_of(region, device);

	return bpf_map_lookup_elem(&registered, &key);
}

/* A region lives no longer. Whoever marks it counts it. */
static __always_inline bool end_region(struct region *region, __u32 device, __u64 now)
{
	if (__sync_val_compare_and_swap(&region->ended_ns, 0, now) != 0)
		return false;
	struct registrations *sums = sums_of(region, device);
	if (sums) {
		__sync_fetch_and_add(&sums->ended, 1);
		__sync_fetch_and_sub(&sums->regions, 1);
		__sync_fetch_and_sub(&sums->region_bytes, region->bytes);
	}
	return true;
}

/* The kernel refused to deregister it. */
static __always_inline void revive_region(struct region *region, __u32 device, __u64 ended_ns)
{
	if (__sync_val_compare_and_swap(&region->ended_ns, ended_ns, 0) != ended_ns)
		return;
	struct registrations *sums = sums_of(region, device);
	if (sums) {
		__sync_fetch_and_sub(&sums->ended, 1);
		__sync_fetch_and_add(&sums->regions, 1);
		__sync_fetch_and_add(&sums->region_bytes, region->bytes);
	}
}

/* Takes up a region. Another one with its key that is still there is gone, and
 * its end was not seen. */
static __always_inline void add_region(struct region_key *key, struct region *region,
				       struct registrations *sums)
{
	struct region *before = bpf_map_lookup_elem(&regions, key);

	if (before)
		end_region(before, key->device, region->since_ns);
	if (bpf_map_update_elem(&regions, key, region, BPF_ANY)) {
		__sync_fetch_and_add(&regions_full, 1);
		return;
	}
	if (sums) {
		__sync_fetch_and_add(&sums->regions, 1);
		__sync_fetch_and_add(&sums->region_bytes, region->bytes);
	}
}
