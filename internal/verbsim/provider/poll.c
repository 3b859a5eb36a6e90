/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll_cq. What a real provider leaves unwritten is left unwritten here: the
 * length of sends and writes, and opcode and length of everything that failed
 * (mlx5, handle_good_req; ibv_poll_cq(3)).
 */
#include "sim.h"

#include <endian.h>
#include <errno.h>

/* Lets the device do what is due, unless there are completions enough. */
void sim_cq_refresh(struct sim_cq *cq, uint32_t want)
{
	struct sim_device *dev = cq->dev;
	uint64_t due = atomic_load_explicit(&dev->next_due, memory_order_acquire);
	uint64_t now;

	if (due == SIM_NEVER || cq->head - cq->tail >= want)
		return;
	now = sim_now();
	if (now < due)
		return;
	pthread_spin_lock(&dev->lock);
	sim_engine_run(dev, now);
	pthread_spin_unlock(&dev->lock);
}

void sim_cq_give_back(const struct sim_cqe *cqe)
{
	if (!cqe->recv)
		atomic_store_explicit(&cqe->qp->sq_freed, cqe->sq_freed, memory_order_release);
	else if (cqe->rq)
		atomic_fetch_add_explicit(&cqe->rq->freed, 1, memory_order_release);
}

static void fill(struct ibv_wc *wc, const struct sim_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->vendor_err = cqe->vendor_err;
#ifdef SIM_MLX5_CQE
	wc->qp_num = be32toh(cqe->entry.sop_drop_qpn) & 0xffffff;
#else
	wc->qp_num = cqe->qpn;
#endif
	if (cqe->status != IBV_WC_SUCCESS)
		return;
	wc->opcode = cqe->wc_opcode;
	wc->wc_flags = cqe->wc_flags;
	if (cqe->has_len)
		wc->byte_len = cqe->byte_len;
	if (cqe->recv) {
		wc->imm_data = cqe->imm;
		wc->src_qp = cqe->src_qp;
		wc->slid = 1;
		wc->sl = 0;
		wc->pkey_index = 0;
		wc->dlid_path_bits = 0;
	} else if (cqe->qp->dev->overtake_ns) {
		wc->imm_data = cqe->imm;
	}
}

int sim_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct sim_cq *cq = (struct sim_cq *)ibcq;
	const struct sim_cqe *last = cq->last;
	int npolled;

	pthread_spin_lock(&cq->lock);
	sim_cq_refresh(cq, (uint32_t)num_entries);
	for (npolled = 0; npolled < num_entries; npolled++, wc++) {
		uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
		const struct sim_cqe *cqe = &cq->ring[tail & cq->mask];

		if (tail == atomic_load_explicit(&cq->head, memory_order_acquire))
			break;
		fill(wc, cqe);
		sim_cq_give_back(cqe);
		cq->due[npolled & (VERBSIM_DUE - 1)] = cqe->due;
		atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
		last = cqe;
	}
	cq->last = last;
	pthread_spin_unlock(&cq->lock);
	return cq->overrun ? -EIO : npolled;
}
