/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post_send. As in real providers the requests before *bad_wr are posted, and
 * a slot of the Send Queue is free again only when a later completion was polled.
 */
#include "sim.h"

#include <errno.h>
#include <time.h>

static int sum_sges(struct sim_device *dev, const struct ibv_send_wr *wr, uint64_t *bytes)
{
	struct ibv_sge copy[SIM_MAX_SGE];
	const struct ibv_sge *sges = wr->sg_list;

	*bytes = 0;
	if (wr->num_sge && dev->check_pointers) {
		if (sim_peek(copy, sges, sizeof(*sges) * (size_t)wr->num_sge))
			return EINVAL;
		sges = copy;
	}
	for (int i = 0; i < wr->num_sge; i++)
		*bytes += sges[i].length;
	return 0;
}

int sim_send_supported(const struct sim_qp *qp, uint32_t opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return 1;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return qp->vqp.qp.qp_type != IBV_QPT_UD;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return qp->vqp.qp.qp_type == IBV_QPT_RC;
	default:
		return 0;
	}
}

/* The programmed effect, if this is the request it was armed for. */
void sim_apply_effect(struct sim_qp *qp, struct sim_wqe *wqe)
{
	if (!qp->effect_armed || qp->effect.skip--)
		return;
	qp->effect_armed = 0;
	wqe->due = qp->effect.never ? SIM_NEVER : qp->effect.delay_ns;
	wqe->status = qp->effect.status;
	wqe->vendor_err = qp->effect.vendor_err & (VERBSIM_VENDOR_RECV - 1);
}

static int build(struct sim_qp *qp, const struct ibv_send_wr *wr, uint32_t head)
{
	struct sim_wqe *wqe = &qp->sq[head & qp->sq_mask];
	uint64_t bytes;

	if (head - atomic_load_explicit(&qp->sq_freed, memory_order_acquire) >= qp->sq_depth)
		return ENOMEM;
	if (!sim_send_supported(qp, wr->opcode) || wr->num_sge < 0 ||
	    (uint32_t)wr->num_sge > qp->sq_max_sge || sum_sges(qp->dev, wr, &bytes))
		return EINVAL;
	*wqe = (struct sim_wqe){
		.wr_id = wr->wr_id,
		.bytes = bytes,
		.opcode = wr->opcode,
		.imm = wr->imm_data,
		.signaled = qp->sig_all || (wr->send_flags & IBV_SEND_SIGNALED),
		.rnr_left = (uint8_t)qp->rnr_retry,
	};
	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		wqe->dest_qpn = wr->wr.ud.remote_qpn & SIM_QPN_MASK;
	sim_apply_effect(qp, wqe);
	return 0;
}

static int refuse(struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
		return EINVAL;
	return qp->dev->check_pointers && sim_send_list_is_cyclic(wr) ? EINVAL : 0;
}

static const struct ibv_send_wr *read_send(struct sim_qp *qp, struct ibv_send_wr *copy,
					   const struct ibv_send_wr *wr)
{
	if (!qp->dev->check_pointers)
		return wr;
	return sim_peek(copy, wr, sizeof(*copy)) ? NULL : copy;
}

/* Lets posts of other threads overtake this one, as when its thread is preempted. */
static void let_overtake(struct sim_device *dev)
{
	struct timespec wait = { .tv_nsec = (long)dev->overtake_ns };

	if (dev->overtake_ns && atomic_fetch_add(&dev->posts, 1) % 4 == 0)
		nanosleep(&wait, NULL);
}

/* A write to the doorbell that the bus does not take at once. */
static void stall(struct sim_device *dev)
{
	uint64_t ns = dev->stall_ns, end = ns ? sim_now() + ns : 0;

	while (ns && sim_now() < end)
		;
}

int sim_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct sim_qp *qp = (struct sim_qp *)ibqp;
	const struct ibv_send_wr *readable;
	struct ibv_send_wr copy;
	uint32_t head;
	int ret;

	let_overtake(qp->dev);
	pthread_spin_lock(&qp->sq_lock);
	head = qp->sq_head;
	ret = refuse(qp, wr);
	for (; wr && !ret; wr = readable->next, head++) {
		readable = read_send(qp, &copy, wr);
		ret = readable ? build(qp, readable, head) : EINVAL;
		if (ret)
			break;
	}
	if (ret)
		*bad_wr = wr;
	if (head != qp->sq_head) {
		qp->sq_head = head;
		stall(qp->dev);
		pthread_spin_lock(&qp->dev->lock);
		sim_engine_ring(qp, head, sim_now());
		pthread_spin_unlock(&qp->dev->lock);
	}
	pthread_spin_unlock(&qp->sq_lock);
	return ret;
}
