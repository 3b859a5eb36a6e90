/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* Carries the bound of a loop, see loop.h; its contents mean nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUE_DEPTH);
	__type(key, __u32);
	__type(value, __u8);
} iterations SEC(".maps");
