/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* When threads that post or poll were away from their CPU, by the index in
 * watched_threads: apart from their state in the map threads, because whoever takes
 * a completion looks up who posted the request. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCHEDULES);
	__type(key, __u32);
	__type(value, struct schedule);
} schedules SEC(".maps");
