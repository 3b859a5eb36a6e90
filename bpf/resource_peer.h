/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "resource_mr.h"

/* Memory of another driver that is registered by its address, on kernels with the
 * peer memory interface of NVIDIA's and Ubuntu's RDMA core. */

/* The largest errno, include/linux/err.h. */
#define ERRNO_MAX 4095

/* The RDMA core asked the peers, and one of them has the memory. */
static __always_inline void peer_answered(__u64 umem)
{
	struct region_call *call = region_call_of_thread();

	if (call && call->bundle && umem < -(__u64)ERRNO_MAX)
		call->kind = MEMORY_PEER;
}

/* struct nvidia_p2p_page_table, nv-p2p.h of NVIDIA's driver. */
#define NVIDIA_PAGE_TABLE_UUID 24

static __always_inline void gpu_pages_entered(__u64 page_table)
{
	struct region_call *call = region_call_of_thread();

	if (call && call->bundle)
		call->gpu_pages = page_table;
}

/* The page table names the GPU. */
static __always_inline void gpu_pages_returned(int error)
{
	struct region_call *call = region_call_of_thread();
	__u64 table = 0, uuid = 0;

	if (!call || !call->gpu_pages)
		return;
	if (!error) {
		call->kind = MEMORY_PEER;
		bpf_probe_read_kernel(&table, sizeof(table), (void *)call->gpu_pages);
		bpf_probe_read_kernel(&uuid, sizeof(uuid),
				      (void *)(table + NVIDIA_PAGE_TABLE_UUID));
		bpf_probe_read_kernel(call->gpu, sizeof(call->gpu), (void *)uuid);
	}
	call->gpu_pages = 0;
}
