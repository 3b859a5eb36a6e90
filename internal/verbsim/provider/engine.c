/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device itself. It has no thread: whoever polls lets it do what is due.
 * A message to a queue pair of the same device consumes a receive there;
 * every other destination is a remote host that is always ready.
 */
#include "sim.h"

#define EAGAIN_RNR 0x100u

static int needs_receive(uint32_t opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint16_t wc_opcode(uint32_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static int has_imm(uint32_t opcode)
{
	return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void push_recv(struct sim_qp *to, struct sim_rq *rq, struct sim_cqe *cqe)
{
	cqe->wr_id = rq->ring[rq->next++ & rq->mask].wr_id;
	cqe->qp = to;
	cqe->qpn = to->vqp.qp.qp_num;
	cqe->rq = rq;
	cqe->recv = 1;
	sim_cq_push((struct sim_cq *)to->vqp.qp.recv_cq, cqe);
}

static struct sim_qp *find_peer(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	uint32_t qpn = qp->vqp.qp.qp_type == IBV_QPT_UD ? wqe->dest_qpn : qp->dest_qpn;
	uint32_t i = (qpn - qp->dev->first_qpn) & SIM_QPN_MASK;

	return i < SIM_MAX_QPS ? qp->dev->qps[i] : NULL;
}

/* IBV_WC_SUCCESS, the status that the sender gets, or EAGAIN_RNR. */
static uint32_t deliver(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	int reliable = qp->vqp.qp.qp_type == IBV_QPT_RC;
	struct sim_qp *peer = find_peer(qp, wqe);
	struct sim_cqe cqe = { 0 };
	struct sim_rq *rq;

	if (!peer)
		return IBV_WC_SUCCESS;
	if (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS)
		return reliable ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
	rq = peer->vqp.qp.srq ? &((struct sim_srq *)peer->vqp.qp.srq)->rq : &peer->rq;
	if (rq->next == rq->head)
		return reliable ? EAGAIN_RNR : IBV_WC_SUCCESS;
	cqe.due = wqe->due;
	cqe.byte_len = (uint32_t)wqe->bytes;
	cqe.has_len = 1;
	cqe.imm = wqe->imm;
	cqe.wc_flags = has_imm(wqe->opcode) ? IBV_WC_WITH_IMM : 0;
	cqe.wc_opcode = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
								  : IBV_WC_RECV;
	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		cqe.byte_len += SIM_GRH_BYTES;
		cqe.wc_flags |= IBV_WC_GRH;
		cqe.src_qp = qp->vqp.qp.qp_num;
	}
	push_recv(peer, rq, &cqe);
	return IBV_WC_SUCCESS;
}

static uint32_t outcome(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	if (qp->state == IBV_QPS_ERR)
		return IBV_WC_WR_FLUSH_ERR;
	if (wqe->status)
		return wqe->status;
	return needs_receive(wqe->opcode) ? deliver(qp, wqe) : IBV_WC_SUCCESS;
}

/* The receiver was not ready: later again, unless the retries are used up. */
static uint32_t retry(const struct sim_qp *qp, struct sim_wqe *wqe)
{
	if (qp->rnr_retry != SIM_RNR_INFINITE && !wqe->rnr_left--)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	wqe->due += SIM_RNR_NS;
	return EAGAIN_RNR;
}

static void push_send(struct sim_qp *qp, const struct sim_wqe *wqe, uint32_t status)
{
	struct sim_cqe cqe = {
		.imm = wqe->imm,
		.wr_id = wqe->wr_id,
		.due = wqe->due,
		.qp = qp,
		.qpn = qp->vqp.qp.qp_num,
		.sq_freed = qp->hw_next + 1,
		.status = status,
		.wc_opcode = wc_opcode(wqe->opcode),
		.byte_len = (uint32_t)wqe->bytes,
		.has_len = wqe->opcode >= IBV_WR_RDMA_READ,
	};

	if (status)
		cqe.vendor_err = status == IBV_WC_WR_FLUSH_ERR ? SIM_VENDOR_FLUSH
				 : wqe->status		       ? wqe->vendor_err
							       : SIM_VENDOR_RETRY;
	sim_cq_push((struct sim_cq *)qp->vqp.qp.send_cq, &cqe);
}

/* What retries delayed also delays the work behind it. */
static void hold_back_next(struct sim_qp *qp, uint64_t due)
{
	struct sim_wqe *next = &qp->sq[qp->hw_next & qp->sq_mask];

	if (qp->hw_next != qp->hw_head && next->due < due)
		next->due = due;
}

static void complete_head(struct sim_qp *qp, uint64_t now)
{
	struct sim_wqe *wqe = &qp->sq[qp->hw_next & qp->sq_mask];
	uint32_t status = outcome(qp, wqe);

	if (status == EAGAIN_RNR)
		status = retry(qp, wqe);
	if (status == EAGAIN_RNR) {
		sim_heap_update(qp);
		return;
	}
	/* Work that failed is reported even when it is unsignaled. */
	if (wqe->signaled || status)
		push_send(qp, wqe, status);
	qp->hw_next++;
	hold_back_next(qp, wqe->due);
	if (status && qp->state != IBV_QPS_ERR)
		sim_engine_error(qp, now);
	else
		sim_heap_update(qp);
}

void sim_engine_run(struct sim_device *dev, uint64_t now)
{
	while (dev->heap_len && sim_qp_due(dev->heap[0]) <= now)
		complete_head(dev->heap[0], now);
}

void sim_engine_flush_recv(struct sim_qp *qp, uint64_t now)
{
	struct sim_rq *rq = &qp->rq;

	while (!qp->vqp.qp.srq && rq->next != rq->head) {
		struct sim_cqe cqe = { .due = now,
				       .status = IBV_WC_WR_FLUSH_ERR,
				       .vendor_err = SIM_VENDOR_FLUSH | VERBSIM_VENDOR_RECV };

		push_recv(qp, rq, &cqe);
	}
}

/* The error state: everything outstanding is flushed, unsignaled work too. */
void sim_engine_error(struct sim_qp *qp, uint64_t now)
{
	qp->state = IBV_QPS_ERR;
	for (uint32_t i = qp->hw_next; i != qp->hw_head; i++)
		qp->sq[i & qp->sq_mask].due = now;
	qp->last_due = now;
	sim_heap_update(qp);
	sim_engine_flush_recv(qp, now);
}

void sim_engine_drop(struct sim_qp *qp)
{
	qp->hw_next = qp->hw_head;
	sim_heap_remove(qp);
}

/* When a request that was just rung will complete. */
static uint64_t due_of(struct sim_qp *qp, const struct sim_wqe *wqe, uint64_t now)
{
	uint64_t due;

	if (qp->state == IBV_QPS_ERR)
		return now;
	due = sim_wire_done(qp->dev, wqe->opcode, wqe->bytes, now);
	if (wqe->due == SIM_NEVER || qp->last_due == SIM_NEVER)
		return SIM_NEVER;
	due += qp->dev->latency_ns + wqe->due; /* due holds the extra delay until now */
	return due > qp->last_due ? due : qp->last_due;
}

/* The doorbell: requests up to head are the device's. */
void sim_engine_ring(struct sim_qp *qp, uint32_t head, uint64_t now)
{
	for (; qp->hw_head != head; qp->hw_head++) {
		struct sim_wqe *wqe = &qp->sq[qp->hw_head & qp->sq_mask];

		wqe->due = due_of(qp, wqe, now);
		qp->last_due = wqe->due;
	}
	sim_heap_update(qp);
}
