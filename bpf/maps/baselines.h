/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* What requests take, by kind: a hash table of its own, see baseline_slot(), in an
 * array, whose elements user space reads and writes in place. It empties those of the
 * kinds that were idle for the longest time before there is no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BASELINES);
	__type(key, __u32);
	__type(value, struct baseline);
} baselines SEC(".maps");
