/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_types.h"
#include "kernel.h"
#include "libbpf/bpf_helpers.h"

/* The combinations of functions seen. User space drops those of processes that
 * ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct extended_key);
	__type(value, struct extended_set);
} extended_sets SEC(".maps");
