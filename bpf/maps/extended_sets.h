/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_types.h"
#include "kernel.h"
#include "libbpf/bpf_helpers.h"

/* The combinations of functions seen. A hostile process can push out those of
 * others: then queues stay unsynced until user space answered again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct extended_key);
	__type(value, struct extended_set);
} extended_sets SEC(".maps");
