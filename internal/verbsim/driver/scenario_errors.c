/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures and what follows: the queue goes into the error state and everything
 * outstanding is flushed, unsignaled requests and receives too. One queue has
 * a Completion Queue for each direction; on the other's shared one the wr_ids
 * of sends and receives are the same numbers.
 */
#include "scenarios.h"

#include <string.h>

#define RECVS 16
#define CHAINS 6
#define FLUSH_NS 2000000000ull

static const enum ibv_wc_status statuses[] = {
	IBV_WC_REM_ACCESS_ERR,	  IBV_WC_RETRY_EXC_ERR, IBV_WC_LOC_PROT_ERR,
	IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_OP_ERR,	IBV_WC_LOC_LEN_ERR,
};

static void poll_both(struct driver *d, struct plan *p, struct queue *q)
{
	uint64_t limit = now_ns() + FLUSH_NS;

	while ((q->head != q->tail || queue_recv_outstanding(q)) && !d->failed) {
		poll_all(d, p);
		if (now_ns() > limit)
			fail(d, "0x%x: %u sends and %llu receives were not flushed", q->qpn,
			     q->head - q->tail, (unsigned long long)queue_recv_outstanding(q));
	}
}

/* Good work, then a request fails, or the program itself breaks the queue. */
static void one_failure(struct driver *d, struct plan *p, struct flow *f, uint64_t round)
{
	uint32_t n = sizeof(statuses) / sizeof(statuses[0]);
	/* Signaled and unsignaled ones, early and late in the stream. */
	struct verbsim_effect effect = { .skip = (uint32_t)(round * 5 % (f->chain * CHAINS)),
					 .status = statuses[round % n],
					 .vendor_err = 0x40 + (uint32_t)(round % n) };
	bool own = round % 4 == 3;

	/* Sends and receives have the same wr_ids, as with NCCL. */
	f->wr_id_base = (uint64_t)f->q->recv_head - f->q->head;
	top_up(d, f->q, RECVS);
	flow_post(d, f);
	while (get(&f->q->signaled_out) && !d->failed)
		poll_all(d, p);
	if (!own)
		d->api->arm(f->q->qp, &effect);
	for (int i = 0; i < CHAINS; i++)
		flow_post(d, f);
	if (own)
		queue_error(d, f->q);
	poll_both(d, p, f->q);
	flow_post(d, f); /* in the error state: flushed at once */
	poll_both(d, p, f->q);
	queue_reset(d, f->q);
	queue_connect(d, f->q, REMOTE_QPN);
}

static void open_flow(struct driver *d, struct flow *f, struct completion_queue *send,
		      struct completion_queue *recv)
{
	struct queue_attr attr = { .send_cq = send,
				   .recv_cq = recv,
				   .depth = d->opt.chain * (CHAINS + 2),
				   .recv_depth = RECVS };
	struct queue *q = queue_open(d, send->dev, &attr);

	queue_connect(d, q, REMOTE_QPN);
	flow_init(d, f, q);
}

int run_errors(struct driver *d)
{
	struct device *dev = device_open(d, d->opt.device, 0);
	struct completion_queue *cqs[3];
	struct flow flows[2];
	struct plan plan = { .flows = flows, .nflows = 2, .cqs = cqs, .ncqs = 3, .poll = 8 };
	uint64_t round = 0;

	for (int i = 0; i < 3; i++)
		cqs[i] = cq_open(d, dev, 2 * (d->opt.chain * (CHAINS + 2) + RECVS), false);
	open_flow(d, &flows[0], cqs[0], cqs[1]);
	open_flow(d, &flows[1], cqs[2], cqs[2]);
	run_start(d);
	for (; run_more(d); round++) {
		run_tick(d);
		one_failure(d, &plan, &flows[round % 2], round / 2);
		if (d->opt.rate)
			sleep_ns((uint64_t)(1e9 / d->opt.rate));
	}
	for (const struct queue *q = d->queues; q && round >= 8; q = q->next)
		if (!get(&q->n.errors) || !get(&q->n.flushed) || !get(&q->n.recv_flushed))
			fail(d, "0x%x: nothing failed or nothing was flushed", q->qpn);
	return 0;
}
