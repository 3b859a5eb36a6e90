/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "threads.h"

/* Calls of a driver's verbs between their entry and their return, by where they
 * are on the stack: no two calls are at one place at one time, whatever thread or
 * interrupt they run in. User space removes what is left over of a call whose
 * return was not seen. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct call);
} kernel_calls SEC(".maps");
