/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

struct consumer_name {
	char text[CONSUMER_NAME];
};

/* The index of a consumer in the kernel by the name of its module. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_CONSUMERS);
	__type(key, struct consumer_name);
	__type(value, __u32);
} consumers SEC(".maps");

/* The same by the address of the name, so that it is read once. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4 * KERNEL_CONSUMERS);
	__type(key, __u64);
	__type(value, __u32);
} consumer_names SEC(".maps");
