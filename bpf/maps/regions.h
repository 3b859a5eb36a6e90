/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "resource_types.h"

/* The memory regions of processes by their local key. One that was deregistered
 * is marked and removed by user space a little later: a request that was slow on
 * it may not have been told yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct region_key);
	__type(value, struct region);
} regions SEC(".maps");
