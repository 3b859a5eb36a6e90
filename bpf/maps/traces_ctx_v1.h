/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* The span that each thread is in, as other OpenTelemetry eBPF tools share it under
 * /sys/fs/bpf/otel; an empty private map when none does.
 * The key is bpf_get_current_pid_tgid(). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct trace_context);
} traces_ctx_v1 SEC(".maps");
