/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* Reads the verbs' structures of the current process. Every function says
 * whether all of it could be read. */

static __always_inline bool read_qp(struct ibv_qp_head *qp, __u64 address)
{
	return bpf_probe_read_user(qp, sizeof(*qp), (void *)address) == 0;
}

static __always_inline bool read_send_wr(struct ibv_send_wr_head *wr, __u64 address)
{
	return bpf_probe_read_user(wr, sizeof(*wr), (void *)address) == 0;
}

static __always_inline __u8 known_operation(__u32 opcode)
{
	return opcode <= OP_ATOMIC_WRITE ? opcode : OP_UNKNOWN;
}

/* The request that follows one, of ibv_send_wr and ibv_recv_wr alike. */
static __always_inline bool read_next_wr(__u64 *next, __u64 wr)
{
	return bpf_probe_read_user(next, sizeof(*next), (void *)(wr + IBV_WR_NEXT)) == 0;
}

static __always_inline bool read_sge_word(__u64 *word, __u64 address)
{
	return bpf_probe_read_user(word, sizeof(*word), (void *)address) == 0;
}

/* What the callee stored to *bad_wr, 0 when it cannot be read. */
static __always_inline __u64 read_bad_wr(__u64 address)
{
	__u64 bad = 0;

	bpf_probe_read_user(&bad, sizeof(bad), (void *)address);
	return bad;
}

static __always_inline bool read_srq_context(__u64 *context, __u64 srq)
{
	return bpf_probe_read_user(context, sizeof(*context), (void *)(srq + IBV_SRQ_CONTEXT)) == 0;
}

/* The length of the device's name with its end, as of bpf_probe_read_user_str. */
static __always_inline long read_device_name(char *name, __u32 size, __u64 context)
{
	__u64 device;

	if (bpf_probe_read_user(&device, sizeof(device), (void *)(context + IBV_CONTEXT_DEVICE)))
		return -1;
	return bpf_probe_read_user_str(name, size, (void *)(device + IBV_DEVICE_NAME));
}

/* Whether no two requests that are outstanding can have the wr_id. */
static __always_inline bool names_one_request(__u64 wr_id)
{
	return false;
}

/* A wr_id, as user space may show it. */
static __always_inline __u64 shown_wr_id(__u64 wr_id)
{
	return wr_id;
}

/* The process by which a CQ is known: that of its queues. */
static __always_inline __u32 cq_owner(__u32 tgid)
{
	return tgid;
}

/* Whether the poller is the current thread, whose name is its own. */
static __always_inline bool is_thread(__u32 tid)
{
	return true;
}

/* Whether the threads that post and poll are watched, see absence.h. */
static __always_inline bool watches_threads(void)
{
	return true;
}
