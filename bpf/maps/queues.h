/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* The slots of all queues. A slot is taken from free_queues, found through
 * queue_index, and recycled by user space alone, some seconds after it left the
 * index: a program that still holds a pointer never sees it belong to another. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");
