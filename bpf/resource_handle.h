/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "libbpf/bpf_core_read.h"
#include "libbpf/bpf_helpers.h"
#include "rdma_core.h"

/* The same number as the caller's in process.h, of any task. */
static __always_inline __u64 incarnation_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime) +
	       BPF_CORE_READ(task, self_exec_id);
}

/* The first member of every user object is the handle that libibverbs gave it:
 * the address of its ibv_qp or ibv_cq (struct ib_uobject). */
static __always_inline __u64 user_handle_of(const void *uobject)
{
	__u64 handle = 0;

	if (uobject)
		bpf_probe_read_kernel(&handle, sizeof(handle), uobject);
	return handle;
}
