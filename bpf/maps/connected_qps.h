/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* QPs that were connected and of which libibverbs did not tell. One that is pushed
 * out is unsynced until it aligns. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct queue_key);
	__type(value, struct connected_qp);
} connected_qps SEC(".maps");
