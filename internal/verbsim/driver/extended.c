/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extended verbs: the same lists and completions as ibv_post_send and
 * ibv_poll_cq take and give, posted through ibv_qp_ex and polled through ibv_cq_ex.
 */
#include "driver.h"

#include <errno.h>

#define LAST_BUFFERS 32

static void begin(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, wr->imm_data);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, 0, 1);
		break;
	default:
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, 1);
		break;
	}
}

static void set_inline_list(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buffers[LAST_BUFFERS];

	for (int i = 0; i < wr->num_sge; i++)
		buffers[i] = (struct ibv_data_buf){ (void *)(uintptr_t)wr->sg_list[i].addr,
						    wr->sg_list[i].length };
	ibv_wr_set_inline_data_list(ex, (size_t)wr->num_sge, buffers);
}

/* All four ways to say which memory, in turn. */
static void set_memory(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr, uint32_t turn)
{
	const struct ibv_sge *sge = wr->sg_list;

	switch (turn % 4) {
	case 0:
		if (wr->num_sge == 1) {
			ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->length);
			return;
		}
		break;
	case 1:
		if (wr->num_sge == 1) {
			ibv_wr_set_inline_data(ex, (void *)(uintptr_t)sge->addr, sge->length);
			return;
		}
		break;
	case 2:
		if (wr->num_sge <= LAST_BUFFERS) {
			set_inline_list(ex, wr);
			return;
		}
		break;
	}
	ibv_wr_set_sge_list(ex, (size_t)wr->num_sge, sge);
}

static void build(struct queue *q, struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		begin(ex, wr);
		if (q->type == IBV_QPT_UD)
			ibv_wr_set_ud_addr(ex, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
					   wr->wr.ud.remote_qkey);
		set_memory(ex, wr, q->built++);
	}
}

/* As ibv_post_send, but that nothing takes effect when something is refused. */
int post_extended(struct queue *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(q->qp);
	int err;

	if (q->abort_every && ++q->chains % q->abort_every == 0) {
		ibv_wr_start(ex);
		build(q, ex, wr);
		ibv_wr_abort(ex);
	}
	ibv_wr_start(ex);
	build(q, ex, wr);
	err = ibv_wr_complete(ex);
	if (err)
		*bad = wr;
	return err;
}

static void read_completion(struct ibv_cq_ex *ex, struct ibv_wc *wc, const struct queue *only)
{
	wc->wr_id = ex->wr_id;
	wc->status = ex->status;
	wc->qp_num = ex->read_qp_num ? ibv_wc_read_qp_num(ex) : only->qpn;
	wc->vendor_err = ibv_wc_read_vendor_err(ex);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	wc->opcode = ibv_wc_read_opcode(ex);
	wc->byte_len = ibv_wc_read_byte_len(ex);
}

/* As ibv_poll_cq: the number of completions, or a negative errno. */
int poll_extended(struct ibv_cq *cq, int n, struct ibv_wc *wc, const struct queue *only)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	struct ibv_poll_cq_attr attr = { 0 };
	int ret = ibv_start_poll(ex, &attr), got = 0;

	if (ret)
		return ret == ENOENT ? 0 : -ret;
	do
		read_completion(ex, &wc[got++], only);
	while (got < n && (ret = ibv_next_poll(ex)) == 0);
	ibv_end_poll(ex);
	return ret && ret != ENOENT ? -ret : got;
}

void confuse(struct queue *q)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(q->qp);
	void (*send)(struct ibv_qp_ex *) = ex->wr_send, (*start)(struct ibv_qp_ex *) = ex->wr_start;

	ex->wr_send = ex->wr_abort;
	ex->wr_abort = send;
	ex->wr_start = (void (*)(struct ibv_qp_ex *))(void *)ex->wr_rdma_write;
	ex->wr_rdma_write = (void (*)(struct ibv_qp_ex *, uint32_t, uint64_t))(void *)start;
}

/* A queue pair whose requests are built; as ibv_create_qp. */
struct ibv_qp *create_extended_qp(struct device *dev, const struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	return ibv_create_qp_ex(dev->ctx, &attr);
}

/* A Completion Queue that is polled one by one; as ibv_create_cq. */
struct ibv_cq *create_extended_cq(struct device *dev, uint32_t entries, bool no_qp_num)
{
	uint64_t without = no_qp_num ? IBV_WC_EX_WITH_QP_NUM : 0;
	struct ibv_cq_init_attr_ex attr = { .cqe = entries,
					    .wc_flags = IBV_WC_STANDARD_FLAGS & ~without };
	struct ibv_cq_ex *ex = ibv_create_cq_ex(dev->ctx, &attr);

	return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}
