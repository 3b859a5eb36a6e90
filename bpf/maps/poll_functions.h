/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* What the comparison of completion sites with entry and return found, by the
 * index in the cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, POLL_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct poll_function);
} poll_functions SEC(".maps");
