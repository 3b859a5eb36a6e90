/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs: creation, states, destruction. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

static struct sim_cq *to_cq(struct ibv_cq *cq)
{
	return (struct sim_cq *)cq;
}

/* Both Completion Queues, in the order of their addresses, then the device. */
static void lock_all(struct sim_qp *qp)
{
	struct sim_cq *a = to_cq(qp->vqp.qp.send_cq), *b = to_cq(qp->vqp.qp.recv_cq);

	pthread_spin_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		pthread_spin_lock(a < b ? &b->lock : &a->lock);
	pthread_spin_lock(&qp->dev->lock);
}

static void unlock_all(struct sim_qp *qp)
{
	struct sim_cq *a = to_cq(qp->vqp.qp.send_cq), *b = to_cq(qp->vqp.qp.recv_cq);

	pthread_spin_unlock(&qp->dev->lock);
	pthread_spin_unlock(&a->lock);
	if (a != b)
		pthread_spin_unlock(&b->lock);
}

static void clean_cqs(struct sim_qp *qp)
{
	sim_cq_clean(to_cq(qp->vqp.qp.send_cq), qp);
	if (qp->vqp.qp.recv_cq != qp->vqp.qp.send_cq)
		sim_cq_clean(to_cq(qp->vqp.qp.recv_cq), qp);
}

/* The lowest free number, so that numbers are used again at once. */
static int take_number(struct sim_qp *qp)
{
	struct sim_device *dev = qp->dev;
	uint32_t i;

	pthread_spin_lock(&dev->lock);
	for (i = 0; i < SIM_MAX_QPS && dev->qps[i]; i++)
		;
	if (i < SIM_MAX_QPS) {
		dev->qps[i] = qp;
		qp->vqp.qp.qp_num = (dev->first_qpn + i) & SIM_QPN_MASK;
	}
	pthread_spin_unlock(&dev->lock);
	return i < SIM_MAX_QPS ? 0 : ENOMEM;
}

static int check_caps(const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
	    attr->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (cap->max_send_wr > SIM_MAX_WR || cap->max_recv_wr > SIM_MAX_WR ||
	    cap->max_send_sge > SIM_MAX_SGE || cap->max_recv_sge > SIM_MAX_SGE)
		return EINVAL;
	return 0;
}

static void free_qp(struct sim_qp *qp)
{
	pthread_spin_destroy(&qp->sq_lock);
	sim_rq_free(&qp->rq);
	free(qp->sq);
	free(qp);
}

/* With a kernel, ibv_cmd_create_qp would fill the public part of the object. */
static void fill_public(struct ibv_qp *ibqp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	ibqp->context = pd->context;
	ibqp->qp_context = attr->qp_context;
	ibqp->pd = pd;
	ibqp->send_cq = attr->send_cq;
	ibqp->recv_cq = attr->recv_cq;
	ibqp->srq = attr->srq;
	ibqp->qp_type = attr->qp_type;
	ibqp->state = IBV_QPS_RESET;
	pthread_mutex_init(&ibqp->mutex, NULL);
	pthread_cond_init(&ibqp->cond, NULL);
}

struct ibv_qp *sim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct sim_qp *qp;

	errno = check_caps(attr);
	if (errno)
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->dev = sim_device_of(pd->context);
	qp->sq_depth = attr->cap.max_send_wr;
	qp->sq_max_sge = attr->cap.max_send_sge;
	qp->sq_mask = sim_pow2(qp->sq_depth) - 1;
	qp->sig_all = attr->sq_sig_all != 0;
	qp->heap_index = SIM_NO_HEAP;
	qp->state = IBV_QPS_RESET;
	pthread_spin_init(&qp->sq_lock, PTHREAD_PROCESS_PRIVATE);
	qp->sq = calloc(qp->sq_mask + 1, sizeof(*qp->sq));
	if (sim_rq_init(&qp->rq, attr->srq ? 0 : attr->cap.max_recv_wr, attr->cap.max_recv_sge) ||
	    !qp->sq || take_number(qp)) {
		free_qp(qp);
		errno = ENOMEM;
		return NULL;
	}
	fill_public(&qp->vqp.qp, pd, attr);
	return &qp->vqp.qp;
}

/* As ib_modify_qp_is_ok() of the kernel has it, which refuses attributes with RESET. */
static int allowed(uint32_t from, uint32_t to, int mask)
{
	switch (to) {
	case IBV_QPS_RESET:
		return mask == IBV_QP_STATE;
	case IBV_QPS_ERR:
		return 1;
	case IBV_QPS_INIT:
		return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
	case IBV_QPS_RTR:
		return from == IBV_QPS_INIT;
	case IBV_QPS_RTS:
		return from == IBV_QPS_RTR || from == IBV_QPS_RTS;
	default:
		return 0;
	}
}

/* Back to an empty queue; completions that were not polled are gone. */
static void reset(struct sim_qp *qp)
{
	sim_engine_drop(qp);
	clean_cqs(qp);
	qp->sq_head = qp->hw_head = qp->hw_next = 0;
	qp->sq_freed = 0;
	qp->rq.head = qp->rq.next = 0;
	qp->rq.freed = 0;
	qp->last_due = 0;
	qp->effect_armed = 0;
}

int sim_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct sim_qp *qp = (struct sim_qp *)ibqp;
	int ret = 0;

	pthread_spin_lock(&qp->sq_lock);
	lock_all(qp);
	if ((mask & IBV_QP_STATE) && !allowed(qp->state, attr->qp_state, mask)) {
		ret = EINVAL;
		goto out;
	}
	if (mask & IBV_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num & SIM_QPN_MASK;
	if (mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	if (!(mask & IBV_QP_STATE))
		goto out;
	if (attr->qp_state == IBV_QPS_RESET)
		reset(qp);
	if (attr->qp_state == IBV_QPS_ERR)
		sim_engine_error(qp, sim_now());
	else
		qp->state = attr->qp_state;
	sim_qp_choose_complete(qp);
out:
	unlock_all(qp);
	pthread_spin_unlock(&qp->sq_lock);
	return ret;
}

int sim_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct sim_qp *qp = (struct sim_qp *)ibqp;

	(void)mask;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->dest_qp_num = qp->dest_qpn;
	attr->rnr_retry = (uint8_t)qp->rnr_retry;
	attr->port_num = 1;
	attr->cap.max_send_wr = qp->sq_depth;
	attr->cap.max_send_sge = qp->sq_max_sge;
	attr->cap.max_recv_wr = qp->rq.depth;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_all = qp->sig_all;
	return 0;
}

int sim_destroy_qp(struct ibv_qp *ibqp)
{
	struct sim_qp *qp = (struct sim_qp *)ibqp;

	lock_all(qp);
	sim_engine_drop(qp);
	clean_cqs(qp);
	qp->dev->qps[(ibqp->qp_num - qp->dev->first_qpn) & SIM_QPN_MASK] = NULL;
	unlock_all(qp);
	free_qp(qp);
	return 0;
}
