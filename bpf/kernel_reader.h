/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "libbpf/bpf_core_read.h"
#include "libbpf/bpf_helpers.h"
#include "rdma_core.h"
#include "types.h"

/* Reads the verbs' structures of the kernel, in the layout of user space. What
 * stands for an ibv_context is the address of the ib_device. */

/* The addresses of ib_drain_qp_done() and mlx5_ib_drain_qp_done(), 0 where they
 * are not known: the RDMA core, or mlx5 in its place, posts a marker with this
 * callback to see a queue drain. Set by user space. */
#define DRAIN_CALLBACKS 2
volatile __u64 drain_done[DRAIN_CALLBACKS] = {};

/* A number for a CQ that may be shown: its address may not. The lower half is
 * what "rdma resource show cq" prints. */
static __always_inline __u64 cq_identity(struct ib_cq *cq)
{
	if (!cq)
		return 0;
	return (__u64)(BPF_CORE_READ(cq, device, index) + 1) << 32 | BPF_CORE_READ(cq, res.id);
}

static __always_inline bool read_qp(struct ibv_qp_head *head, __u64 address)
{
	struct ib_qp *qp = (void *)address;

	head->context = (__u64)BPF_CORE_READ(qp, device);
	head->qp_context = 0;
	head->pd = (__u64)BPF_CORE_READ(qp, pd);
	head->send_cq = cq_identity(BPF_CORE_READ(qp, send_cq));
	head->recv_cq = cq_identity(BPF_CORE_READ(qp, recv_cq));
	head->srq = (__u64)BPF_CORE_READ(qp, srq);
	head->handle = 0;
	head->qp_num = BPF_CORE_READ(qp, qp_num);
	head->state = ~0u; /* nobody keeps it for all drivers */
	head->qp_type = BPF_CORE_READ(qp, qp_type);
	return head->context != 0;
}

/* The marker by which a queue is seen to drain: it fails like everything that the
 * queue is rid of. */
static __always_inline bool is_drain_marker(__u32 opcode, __u32 num_sge, __u64 wr_id)
{
	__u64 done = 0;

	if (num_sge || opcode != IB_WR_RDMA_WRITE)
		return false;
	struct ib_cqe *cqe = (void *)wr_id;
	bpf_core_read(&done, sizeof(done), &cqe->done);
	return done && (done == drain_done[0] || done == drain_done[1]);
}

/* The operation of a request of the kernel. Not static: to the verifier its value
 * is any number then, and not one way more for each case. */
__noinline int operation_of(__u32 opcode, __u32 num_sge, __u64 wr_id)
{
	switch (opcode) {
	case IB_WR_RDMA_READ_WITH_INV:
		return OP_RDMA_READ;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		return OP_ATOMIC_CMP_AND_SWP;
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		return OP_ATOMIC_FETCH_AND_ADD;
	case IB_WR_REG_MR:
	case IB_WR_REG_MR_INTEGRITY:
		return OP_REG_MR;
	default:
		if (is_drain_marker(opcode, num_sge, wr_id))
			return OP_DRAIN;
		return opcode <= OP_ATOMIC_WRITE ? opcode : OP_UNKNOWN;
	}
}

static __always_inline bool read_send_wr(struct ibv_send_wr_head *head, __u64 address)
{
	struct ib_send_wr *wr = (void *)address;
	struct ib_send_wr *next = NULL;

	if (bpf_core_read(&next, sizeof(next), &wr->next))
		return false;
	head->wr_id = BPF_CORE_READ(wr, wr_id);
	head->next = (__u64)next;
	head->sg_list = (__u64)BPF_CORE_READ(wr, sg_list);
	head->num_sge = BPF_CORE_READ(wr, num_sge);
	head->send_flags = BPF_CORE_READ(wr, send_flags);
	head->imm_data = 0;
	head->opcode = operation_of(BPF_CORE_READ(wr, opcode), head->num_sge, head->wr_id);
	return true;
}

static __always_inline __u8 known_operation(__u32 opcode)
{
	return opcode; /* of read_send_wr() */
}

/* The request that follows one: the first member of ib_send_wr and ib_recv_wr. */
static __always_inline bool read_next_wr(__u64 *next, __u64 wr)
{
	struct ib_send_wr *request = (void *)wr;

	return bpf_core_read(next, sizeof(*next), &request->next) == 0;
}

/* struct ib_sge is that of user space. */
static __always_inline bool read_sge_word(__u64 *word, __u64 address)
{
	return bpf_probe_read_kernel(word, sizeof(*word), (void *)address) == 0;
}

/* What the callee stored to *bad_wr, 0 when it cannot be read: callers may pass
 * none, and ib_post_send() puts one of its own in place. */
static __always_inline __u64 read_bad_wr(__u64 address)
{
	__u64 bad = 0;

	bpf_probe_read_kernel(&bad, sizeof(bad), (void *)address);
	return bad;
}

static __always_inline bool read_srq_context(__u64 *context, __u64 srq)
{
	*context = (__u64)BPF_CORE_READ((struct ib_srq *)srq, device);
	return *context != 0;
}

/* The length of the device's name with its end, as of bpf_probe_read_kernel_str. */
static __always_inline long read_device_name(char *name, __u32 size, __u64 context)
{
	struct ib_device *device = (void *)context;

	return bpf_core_read_str(name, size, &device->name);
}

/* A wr_id is most often the address of the structure that the consumer keeps for
 * this request alone (struct ib_cqe). */
static __always_inline bool names_one_request(__u64 wr_id)
{
	return (__s64)wr_id < 0;
}

/* Addresses of the kernel are not shown to anyone. */
static __always_inline __u64 shown_wr_id(__u64 wr_id)
{
	return 0;
}

/* Consumers share CQs that the RDMA core keeps for them (ib_cq_pool_get()). */
static __always_inline __u32 cq_owner(__u32 tgid)
{
	return KERNEL_TGID;
}

static __always_inline bool is_thread(__u32 tid)
{
	return !(tid & NO_THREAD);
}

/* Consumers in the kernel post and poll in whatever thread there is. */
static __always_inline bool watches_threads(void)
{
	return false;
}
