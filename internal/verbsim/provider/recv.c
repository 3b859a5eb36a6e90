/* SPDX-License-Identifier: Apache-2.0 */
/* Receive Queues, private to a queue pair or shared. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

int sim_rq_init(struct sim_rq *rq, uint32_t depth, uint32_t max_sge)
{
	rq->depth = depth;
	rq->max_sge = max_sge;
	rq->mask = sim_pow2(depth) - 1;
	pthread_spin_init(&rq->lock, PTHREAD_PROCESS_PRIVATE);
	rq->ring = calloc(rq->mask + 1, sizeof(*rq->ring));
	return rq->ring ? 0 : ENOMEM;
}

void sim_rq_free(struct sim_rq *rq)
{
	pthread_spin_destroy(&rq->lock);
	free(rq->ring);
}

/* Reads one request, carefully where the device is told to. */
static int read_recv(struct sim_device *dev, struct ibv_recv_wr *to, const struct ibv_recv_wr *from)
{
	if (dev->check_pointers)
		return sim_peek(to, from, sizeof(*to));
	*to = *from;
	return 0;
}

static int post(struct sim_device *dev, struct sim_rq *rq, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr copy;
	uint32_t head;
	int ret = 0;

	pthread_spin_lock(&rq->lock);
	for (head = rq->head; wr; wr = copy.next, head++) {
		if (read_recv(dev, &copy, wr) || copy.num_sge < 0 ||
		    (uint32_t)copy.num_sge > rq->max_sge) {
			ret = EINVAL;
			break;
		}
		if (head - atomic_load_explicit(&rq->freed, memory_order_acquire) >= rq->depth) {
			ret = ENOMEM;
			break;
		}
		rq->ring[head & rq->mask].wr_id = copy.wr_id;
	}
	if (ret)
		*bad_wr = wr;
	pthread_spin_lock(&dev->lock);
	rq->head = head;
	pthread_spin_unlock(&dev->lock);
	pthread_spin_unlock(&rq->lock);
	return ret;
}

int sim_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct sim_qp *qp = (struct sim_qp *)ibqp;
	int ret;

	if (ibqp->srq || qp->state == IBV_QPS_RESET) {
		*bad_wr = wr;
		return EINVAL;
	}
	ret = post(qp->dev, &qp->rq, wr, bad_wr);
	if (qp->state != IBV_QPS_ERR)
		return ret;
	pthread_spin_lock(&qp->dev->lock);
	sim_engine_flush_recv(qp, sim_now());
	pthread_spin_unlock(&qp->dev->lock);
	return ret;
}

int sim_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct sim_srq *srq = (struct sim_srq *)ibsrq;

	return post(srq->dev, &srq->rq, wr, bad_wr);
}

/* ibv_create_srq fills context, srq_context and pd, and makes the mutex. */
struct ibv_srq *sim_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct sim_srq *srq;

	if (!attr->attr.max_wr || attr->attr.max_wr > SIM_MAX_WR ||
	    attr->attr.max_sge > SIM_MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->dev = sim_device_of(pd->context);
	if (sim_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge)) {
		sim_rq_free(&srq->rq);
		free(srq);
		errno = ENOMEM;
		return NULL;
	}
	return &srq->ibv;
}

int sim_destroy_srq(struct ibv_srq *ibsrq)
{
	struct sim_srq *srq = (struct sim_srq *)ibsrq;

	sim_rq_free(&srq->rq);
	free(srq);
	return 0;
}
