/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "resource_types.h"

/* The QPs of all devices, user's and kernel's. A QP that was destroyed is marked
 * and removed by user space a little later: its last completions may still be
 * on their way. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct kernel_qp_key);
	__type(value, struct kernel_qp);
} kernel_qps SEC(".maps");
