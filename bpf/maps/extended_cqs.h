/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_types.h"
#include "kernel.h"
#include "libbpf/bpf_helpers.h"

/* Completion Queues that are polled through ibv_cq_ex. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct cq_key);
	__type(value, struct extended_cq);
} extended_cqs SEC(".maps");
