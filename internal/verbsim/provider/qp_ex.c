/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posting through ibv_qp_ex: requests are built one call after another, under
 * the lock of the Send Queue from wr_start on, and take effect together when
 * wr_complete succeeds.
 */
#include "sim.h"

#include <errno.h>

static struct sim_qp *to_qp(struct ibv_qp_ex *ex)
{
	return (struct sim_qp *)ex;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct sim_qp *qp = to_qp(ex);

	pthread_spin_lock(&qp->sq_lock);
	qp->build = (struct sim_build){ .head = qp->sq_head,
					.effect_armed = qp->effect_armed,
					.effect = qp->effect };
}

/* Nothing that was built takes effect. */
static void drop(struct sim_qp *qp)
{
	qp->effect_armed = qp->build.effect_armed;
	qp->effect = qp->build.effect;
	pthread_spin_unlock(&qp->sq_lock);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	drop(to_qp(ex));
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct sim_qp *qp = to_qp(ex);

	if (qp->build.err) {
		int err = qp->build.err;

		drop(qp);
		return err;
	}
	if (qp->build.head != qp->sq_head) {
		qp->sq_head = qp->build.head;
		pthread_spin_lock(&qp->dev->lock);
		sim_engine_ring(qp, qp->sq_head, sim_now());
		pthread_spin_unlock(&qp->dev->lock);
	}
	pthread_spin_unlock(&qp->sq_lock);
	return 0;
}

static int wr_complete_error(struct ibv_qp_ex *ex)
{
	drop(to_qp(ex));
	return EINVAL;
}

void sim_qp_choose_complete(struct sim_qp *qp)
{
	bool ready = qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR;

	if (qp->vqp.comp_mask & SIM_VERBS_QP_EX)
		qp->vqp.qp_ex.wr_complete = ready ? wr_complete : wr_complete_error;
}

static void begin(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t imm)
{
	struct sim_qp *qp = to_qp(ex);
	struct sim_wqe *wqe = &qp->sq[qp->build.head & qp->sq_mask];

	if (qp->build.err)
		return;
	if (qp->build.head - atomic_load_explicit(&qp->sq_freed, memory_order_acquire) >=
	    qp->sq_depth)
		qp->build.err = ENOMEM;
	else if (!sim_send_supported(qp, opcode))
		qp->build.err = EINVAL;
	if (qp->build.err)
		return;
	*wqe = (struct sim_wqe){
		.wr_id = ex->wr_id,
		.opcode = opcode,
		.imm = imm,
		.signaled = qp->sig_all || (ex->wr_flags & IBV_SEND_SIGNALED),
		.rnr_left = (uint8_t)qp->rnr_retry,
	};
	sim_apply_effect(qp, wqe);
	qp->build.head++;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin(ex, IBV_WR_SEND_WITH_IMM, imm);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	(void)rkey;
	(void)addr;
	begin(ex, IBV_WR_RDMA_WRITE, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	(void)rkey;
	(void)addr;
	begin(ex, IBV_WR_RDMA_WRITE_WITH_IMM, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	(void)rkey;
	(void)addr;
	begin(ex, IBV_WR_RDMA_READ, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	(void)rkey;
	(void)addr;
	(void)compare;
	(void)swap;
	begin(ex, IBV_WR_ATOMIC_CMP_AND_SWP, 0);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	(void)rkey;
	(void)addr;
	(void)add;
	begin(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, 0);
}

/* The request that the last builder made, NULL when it did not. */
static struct sim_wqe *last(struct ibv_qp_ex *ex)
{
	struct sim_qp *qp = to_qp(ex);

	return qp->build.err ? NULL : &qp->sq[(qp->build.head - 1) & qp->sq_mask];
}

static void set_bytes(struct ibv_qp_ex *ex, size_t entries, uint64_t bytes)
{
	struct sim_wqe *wqe = last(ex);

	if (!wqe)
		return;
	if (entries > to_qp(ex)->sq_max_sge)
		to_qp(ex)->build.err = EINVAL;
	wqe->bytes = bytes;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct sim_wqe *wqe = last(ex);

	(void)ah;
	(void)qkey;
	if (wqe)
		wqe->dest_qpn = qpn & SIM_QPN_MASK;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	(void)lkey;
	(void)addr;
	set_bytes(ex, 1, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += list[i].length;
	set_bytes(ex, n, bytes);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	(void)addr;
	set_bytes(ex, 1, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += list[i].length;
	set_bytes(ex, n, bytes);
}

static void fill(struct ibv_qp_ex *ex)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete_error;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}

/* The attributes begin with those of ibv_create_qp. */
struct ibv_qp *sim_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *ibqp;

	(void)context;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	ibqp = sim_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
	if (!ibqp || !(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return ibqp;
	fill(&((struct sim_qp *)ibqp)->vqp.qp_ex);
	((struct sim_qp *)ibqp)->vqp.comp_mask |= SIM_VERBS_QP_EX;
	return ibqp;
}
