/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* Which schedule a thread has, by its id. The thread's end removes it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SCHEDULES);
	__type(key, __u32);
	__type(value, __u32);
} watched_threads SEC(".maps");
