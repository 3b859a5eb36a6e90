/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "knobs.h"
#include "maps/cqe_samples.h"
#include "maps/threads.h"

/* The time stamp that a device writes into an entry of a CQ (CQE). At a completion
 * site of libmlx5 the address of the entry is known. It is read on demand alone:
 * elsewhere the verifier removes all of this. */

/* struct mlx5_cqe64 of infiniband/mlx5dv.h from its time stamp on; big-endian. */
#define MLX5_CQE_TIMESTAMP 48
struct mlx5_cqe_end {
	__u64 timestamp;
	__u32 sop_drop_qpn;
	__u16 wqe_counter;
	__u8 signature;
	__u8 op_own;
};
_Static_assert(sizeof(struct mlx5_cqe_end) == 16, "struct mlx5_cqe64 is 64 bytes");

/* How often a thread's completions are samples for the calibration. */
#define CQE_SAMPLE_NS 2000000ULL

/* Reads the stamp of the completion in delivery->wc. Entries of failed requests
 * have none (struct mlx5_err_cqe). */
static __always_inline void read_cqe(struct delivery *delivery, __u64 address)
{
	struct mlx5_cqe_end cqe;

	if (delivery->wc.status != IBV_WC_SUCCESS)
		return;
	if (bpf_probe_read_user(&cqe, sizeof(cqe), (void *)(address + MLX5_CQE_TIMESTAMP))) {
		count(LOSS_READ_CQE);
		return;
	}
	/* The number of the completion was made of that of its entry. */
	if (((__builtin_bswap32(cqe.sop_drop_qpn) ^ delivery->wc.qp_num) & 0xffffff) != 0) {
		count(LOSS_READ_CQE);
		return;
	}
	delivery->cqe_stamp = __builtin_bswap64(cqe.timestamp);
	delivery->has_cqe = 1;
}

/* Tells user space of a stamp, and when it was found. */
static __always_inline void sample_cqe(struct queue *queue, struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;

	if (!delivery->has_cqe || delivery->now - thread->sampled_ns < CQE_SAMPLE_NS)
		return;
	thread->sampled_ns = delivery->now;
	struct cqe_sample *sample = bpf_ringbuf_reserve(&cqe_samples, sizeof(*sample), 0);
	if (!sample) {
		count(LOSS_CQE_SAMPLES);
		return;
	}
	sample->incarnation = queue->key.incarnation;
	sample->stamp = delivery->cqe_stamp;
	sample->seen_ns = delivery->now;
	sample->tgid = queue->key.tgid;
	sample->device = queue->device;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}
