/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* Schedules that no thread has, filled by user space at the start. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, SCHEDULES);
	__type(value, __u32);
} free_schedules SEC(".maps");
