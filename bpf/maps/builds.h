/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_types.h"
#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "threads.h"

/* What a thread builds on an ibv_qp_ex. Nothing of it counts before
 * wr_complete. */
struct build {
	struct call call; /* of wr_complete */
	__u64 qp;	  /* wr_start was called on it; 0: on none */
	__u64 since;	  /* when its library began to be observed */
	__u32 library;
	__u32 count; /* may exceed what there is room for */
	__u32 unreadable;
	__u32 pad;
	struct built requests[BUILT_MAX];
};

/* Apart from the other state of a thread: most never build. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct build);
} builds SEC(".maps");
