/* SPDX-License-Identifier: Apache-2.0 */
/* Sends between two queues of this program: Shared Receive Queue, UD, UC, late receives. */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct receivers {
	struct queue **queues;
	uint64_t *missed_ns; /* late ones: since when a message waits for a receive, 0: none does */
	uint32_t n, depth;
	struct shared_recv *srq;
};

static void keep_full(struct driver *d, struct plan *p)
{
	struct receivers *r = p->private;

	if (r->srq)
		top_up_srq(d, r->srq, r->srq->depth);
	for (uint32_t i = 0; i < r->n && !r->srq; i++)
		top_up(d, r->queues[i], r->depth);
}

/* A receive is posted only when a message has waited for it for the time asked:
 * every message waits, however the threads of the machine are scheduled. */
static void answer_late(struct driver *d, struct plan *p)
{
	struct receivers *r = p->private;
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < r->n; i++) {
		struct queue *q = r->queues[i];

		if (get(&p->flows[i].q->n.posted) <= get(&q->n.recv_posted)) {
			r->missed_ns[i] = 0;
		} else if (!r->missed_ns[i]) {
			r->missed_ns[i] = now;
		} else if (now - r->missed_ns[i] >= (uint64_t)(d->opt.late_us * 1000)) {
			top_up(d, q, (uint32_t)queue_recv_outstanding(q) + 1);
			r->missed_ns[i] = 0;
		}
	}
}

static struct ibv_ah *address_of(struct driver *d, struct device *dev)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(dev->pd, &attr);

	if (!ah)
		fail(d, "ibv_create_ah: out of memory");
	return ah;
}

static void open_pair(struct driver *d, struct flow *f, struct queue **receiver,
		      const struct queue_attr *attr)
{
	struct queue_attr sender = *attr;
	struct queue *a, *b;

	sender.srq = NULL;
	sender.recv_depth = 0;
	a = queue_open(d, attr->send_cq->dev, &sender);
	b = queue_open(d, attr->send_cq->dev, attr);
	queue_connect(d, a, b->qpn);
	queue_connect(d, b, a->qpn);
	flow_init(d, f, a);
	f->last_op = d->opt.op == IBV_WR_SEND ? IBV_WR_SEND_WITH_IMM : d->opt.op;
	/* Every queue finds a receive for all that its peer may have outstanding. */
	f->limit = d->opt.depth / 2;
	if (attr->type == IBV_QPT_UD)
		f->remote_qpn = b->qpn;
	*receiver = b;
}

static void check(struct driver *d, const struct plan *p)
{
	uint64_t sent = 0, received = 0;

	for (const struct queue *q = d->queues; q; q = q->next)
		received += get(&q->n.recv_completions);
	for (uint32_t i = 0; i < p->nflows; i++)
		sent += get(&p->flows[i].q->n.posted);
	if (sent != received && !d->failed)
		fail(d, "%llu messages were sent and %llu received", (unsigned long long)sent,
		     (unsigned long long)received);
}

static int run_pairs(struct driver *d, enum ibv_qp_type type, bool shared, bool late)
{
	uint32_t n = d->opt.qps, depth = d->opt.depth;
	struct device *dev = device_open(d, d->opt.device, 0);
	struct completion_queue *cqs[2] = { cq_open(d, dev, depth * n, false),
					    cq_open(d, dev, depth * n, false) };
	struct queue_attr attr = { .send_cq = cqs[0],
				   .recv_cq = cqs[1],
				   .type = type,
				   .depth = depth,
				   .recv_depth = depth };
	struct flow *flows = calloc(n, sizeof(*flows));
	struct receivers r = { .queues = calloc(n, sizeof(*r.queues)),
			       .missed_ns = calloc(n, sizeof(*r.missed_ns)),
			       .n = n,
			       .depth = depth };
	struct plan plan = { .flows = flows,
			     .nflows = n,
			     .cqs = cqs,
			     .ncqs = 2,
			     .poll = 16,
			     .rate = d->opt.rate,
			     .turn = late ? NULL : keep_full,
			     .private = &r };
	struct ibv_ah *ah = type == IBV_QPT_UD ? address_of(d, dev) : NULL;

	if (!flows || !r.queues || !r.missed_ns)
		return -1;
	if (late) /* also while the queues drain, or they never would */
		plan.before_poll = answer_late;
	if (shared)
		attr.srq = r.srq = srq_open(d, dev, depth * n);
	for (uint32_t i = 0; i < n; i++) {
		open_pair(d, &flows[i], &r.queues[i], &attr);
		flows[i].ah = ah;
	}
	drive(d, &plan);
	check(d, &plan);
	if (ah)
		ibv_destroy_ah(ah);
	return 0;
}

int run_srq(struct driver *d)
{
	return run_pairs(d, IBV_QPT_RC, true, false);
}

int run_ud(struct driver *d)
{
	return run_pairs(d, IBV_QPT_UD, false, false);
}

int run_uc(struct driver *d)
{
	return run_pairs(d, IBV_QPT_UC, false, false);
}

int run_rnr(struct driver *d)
{
	return run_pairs(d, IBV_QPT_RC, false, true);
}
