/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs come and go: drained or with work outstanding, reset and used
 * again, and the next one has the number of the last. Some are sq_sig_all.
 */
#include "scenarios.h"

#include <stdlib.h>

#define RECVS 4

struct life {
	struct flow flow;
	uint64_t round;
};

static void be_born(struct driver *d, struct plan *p, struct life *l)
{
	struct queue_attr attr = { .send_cq = p->cqs[0],
				   .recv_cq = p->cqs[0],
				   .depth = d->opt.depth,
				   .recv_depth = 8,
				   .sig_all = l->round % 3 == 2 };
	struct queue *q = queue_open(d, p->cqs[0]->dev, &attr);

	flow_free(&l->flow);
	queue_connect(d, q, REMOTE_QPN);
	flow_init(d, &l->flow, q);
	l->flow.wr_ids = l->round % 2 ? WR_ID_SLOT : WR_ID_SEQUENCE;
}

static void work(struct driver *d, struct plan *p, struct flow *f, bool finish)
{
	top_up(d, f->q, RECVS);
	for (int i = 0; i < 4 && flow_fits(f); i++)
		flow_post(d, f);
	while (finish && get(&f->q->signaled_out) && !d->failed)
		poll_all(d, p);
}

/* Turns: 0 drained, 1 reset and destroyed, 2 drained, 3 destroyed, ... */
static void live(struct driver *d, struct plan *p, struct life *l)
{
	uint64_t r = l->round++;

	if (!l->flow.q)
		be_born(d, p, l);
	work(d, p, &l->flow, true);
	/* Its last turn, and the one before a reset, end with work outstanding. */
	work(d, p, &l->flow, r % 2 == 0);
	if (r % 4 == 1) {
		queue_reset(d, l->flow.q);
		queue_connect(d, l->flow.q, REMOTE_QPN);
		work(d, p, &l->flow, true);
	}
	if (r % 2) {
		queue_destroy(d, l->flow.q);
		l->flow.q = NULL;
	}
}

int run_churn(struct driver *d)
{
	uint32_t n = d->opt.qps;
	struct device *dev = device_open(d, d->opt.device, 0);
	struct completion_queue *cq = cq_open(d, dev, n * (d->opt.depth + 8), false);
	struct life *lives = calloc(n, sizeof(*lives));
	struct plan plan = { .cqs = &cq, .ncqs = 1, .poll = 16 };
	uint64_t turns = 0;

	if (!lives)
		return -1;
	run_start(d);
	for (; run_more(d); turns++) {
		run_tick(d);
		live(d, &plan, &lives[turns % n]);
		poll_all(d, &plan);
		if (d->opt.rate)
			sleep_ns((uint64_t)(1e9 / d->opt.rate));
	}
	return 0;
}
