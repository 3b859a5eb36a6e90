/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polling through ibv_cq_ex, one completion at a time. What is not in the public
 * part is read through functions, from the place where the device wrote it.
 */
#include "sim.h"

#include <errno.h>

static struct sim_cq *to_cq(struct ibv_cq_ex *ex)
{
	return (struct sim_cq *)ex;
}

/* Makes the next completion the current one; ENOENT leaves the one before in place. */
static int take(struct sim_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (cq->overrun)
		return EIO;
	if (tail == atomic_load_explicit(&cq->head, memory_order_acquire))
		return ENOENT;
	cq->copy = cq->ring[tail & cq->mask];
	cq->current = &cq->copy;
	sim_cq_give_back(cq->current);
	cq->due[cq->taken++ & (VERBSIM_DUE - 1)] = cq->current->due;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	cq->ex.wr_id = cq->current->wr_id;
	cq->ex.status = cq->current->status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct sim_cq *cq = to_cq(ex);
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	pthread_spin_lock(&cq->lock);
	cq->taken = 0;
	sim_cq_refresh(cq, cq->depth);
	ret = take(cq);
	if (ret)
		pthread_spin_unlock(&cq->lock);
	return ret;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(to_cq(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	pthread_spin_unlock(&to_cq(ex)->lock);
}

/* With SIM_OPCODE_DECIDED as libmlx5 does: no number in memory is the opcode. */
static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	const struct sim_cqe *cqe = to_cq(ex)->current;

#ifdef SIM_OPCODE_DECIDED
	if (cqe->recv)
		return cqe->wc_flags & IBV_WC_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
#endif
	return cqe->wc_opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->current->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->current->byte_len;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->current->qpn & SIM_QPN_MASK;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->current->wc_flags;
}

/* libibverbs fills in what the public part begins with. */
struct ibv_cq_ex *sim_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *cq =
		sim_create_cq(context, (int)attr->cqe, attr->channel, (int)attr->comp_vector);
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;

	if (!cq)
		return NULL;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (attr->wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (attr->wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	return ex;
}
