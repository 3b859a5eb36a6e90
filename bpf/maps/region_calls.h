/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "resource_types.h"

/* The registration or deregistration that a thread is in at this moment, by pid
 * and tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct region_call);
} region_calls SEC(".maps");
