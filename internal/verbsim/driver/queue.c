/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs and their states. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

static _Noreturn void die(const char *what, const char *why)
{
	fprintf(stderr, "verbsim: %s: %s\n", what, why);
	exit(1);
}

static struct ibv_qp *create(struct device *dev, const struct queue_attr *a, bool extended)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a->send_cq->cq,
		.recv_cq = a->recv_cq->cq,
		.srq = a->srq ? a->srq->srq : NULL,
		.cap = { .max_send_wr = a->depth,
			 .max_recv_wr = a->recv_depth,
			 .max_send_sge = a->sges ? a->sges : 1,
			 .max_recv_sge = 1 },
		.qp_type = a->type ? a->type : IBV_QPT_RC,
		.sq_sig_all = a->sig_all,
	};

	return extended ? create_extended_qp(dev, &init) : ibv_create_qp(dev->pd, &init);
}

struct queue *queue_open(struct driver *d, struct device *dev, const struct queue_attr *a)
{
	struct queue *q = calloc(1, sizeof(*q));
	uint32_t room = a->depth + (a->room ? a->room : a->depth);

	if (!q)
		die("a queue pair", "out of memory");
	q->fifo_mask = pow2(room) - 1;
	q->recv_mask = pow2(a->recv_depth * 2 + 1) - 1;
	q->fifo = calloc(q->fifo_mask + 1, sizeof(*q->fifo));
	q->recv_fifo = calloc(q->recv_mask + 1, sizeof(*q->recv_fifo));
	q->extended = d->opt.ext_post;
	q->abort_every = d->opt.abort_every;
	q->qp = create(dev, a, q->extended);
	if (!q->qp || !q->fifo || !q->recv_fifo)
		die("ibv_create_qp", strerror(errno));
	q->dev = dev;
	q->qpn = q->qp->qp_num;
	q->depth = a->depth;
	q->recv_depth = a->recv_depth;
	q->type = q->qp->qp_type;
	q->sig_all = a->sig_all;
	q->shared = a->shared;
	q->from_srq = a->srq != NULL;
	q->created_ns = now_ns();
	pthread_mutex_lock(&d->mutex);
	q->next = d->queues;
	d->queues = q;
	dev->queues[q->qpn - FIRST_QPN] = q;
	pthread_mutex_unlock(&d->mutex);
	return q;
}

struct queue *queue_find(struct device *dev, uint32_t qpn)
{
	uint32_t i = qpn - FIRST_QPN;

	return i < MAX_NUMBERS ? dev->queues[i] : NULL;
}

static void modify(struct driver *d, struct queue *q, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(q->qp, attr, mask | IBV_QP_STATE);

	if (ret)
		fail(d, "ibv_modify_qp of 0x%x to state %d: %s", q->qpn, attr->qp_state,
		     strerror(ret));
}

void queue_connect(struct driver *d, struct queue *q, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.dest_qp_num = dest,
		.path_mtu = IBV_MTU_4096,
		.ah_attr = { .dlid = 2, .port_num = 1 },
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
	};
	bool rc = q->type == IBV_QPT_RC, ud = q->type == IBV_QPT_UD;

	if (d->opt.ext_lie)
		confuse(q);
	modify(d, q, &attr,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	modify(d, q, &attr,
	       (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
		       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	attr.qp_state = IBV_QPS_RTS;
	modify(d, q, &attr,
	       IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC
				   : 0));
	if (d->opt.ext_lie)
		confuse(q);
}

uint64_t queue_outstanding(const struct queue *q)
{
	const struct counts *n = &q->n;

	return get(&n->posted) - get(&n->undone) - get(&n->completions) -
	       get(&n->unsignaled_retired) - get(&n->discarded);
}

uint64_t queue_recv_outstanding(const struct queue *q)
{
	const struct counts *n = &q->n;

	if (q->from_srq)
		return 0;
	return get(&n->recv_posted) - get(&n->recv_undone) - get(&n->recv_completions) -
	       get(&n->recv_discarded);
}

/* What is outstanding now will never be heard of again. */
static void discard(struct driver *d, struct queue *q)
{
	if (!q->shared && queue_outstanding(q) != q->head - q->tail)
		fail(d, "0x%x has %llu requests outstanding by count and %u by name", q->qpn,
		     (unsigned long long)queue_outstanding(q), q->head - q->tail);
	add(&q->n.discarded, queue_outstanding(q));
	add(&q->n.recv_discarded, queue_recv_outstanding(q));
	q->tail = q->head;
	q->recv_tail = q->recv_head;
	q->signaled_out = 0;
	q->spike = NULL;
}

void queue_error(struct driver *d, struct queue *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	modify(d, q, &attr, 0);
}

void queue_reset(struct driver *d, struct queue *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	modify(d, q, &attr, 0);
	discard(d, q);
}

static void expect_refusal(struct driver *d, struct queue *q, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	if (ibv_modify_qp(q->qp, &attr, mask | IBV_QP_STATE) != EINVAL)
		fail(d, "ibv_modify_qp of 0x%x to state %d was not refused", q->qpn, state);
}

void queue_refuse(struct driver *d, struct queue *q)
{
	expect_refusal(d, q, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	expect_refusal(d, q, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN);
	expect_refusal(d, q, IBV_QPS_RESET, IBV_QP_PORT);
}

void queue_destroy(struct driver *d, struct queue *q)
{
	int ret;

	/* Its number may be given out again as soon as it is free. */
	q->dev->queues[q->qpn - FIRST_QPN] = NULL;
	ret = ibv_destroy_qp(q->qp);
	if (ret)
		fail(d, "ibv_destroy_qp of 0x%x: %s", q->qpn, strerror(ret));
	q->qp = NULL;
	q->destroyed_ns = now_ns();
	discard(d, q);
	free(q->fifo);
	free(q->recv_fifo);
	q->fifo = NULL;
	q->recv_fifo = NULL;
}
