/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of NCCL's InfiniBand transport (src/transport/net_ib.cc up to 2.28,
 * net_ib/p2p.cc from 2.29): the receiver posts a receive without buffer and
 * writes a clear-to-send; the sender answers with a chain of writes of which
 * only the last, a write with immediate, is signaled. Every request of a chain,
 * the receive and the clear-to-send have the slot as wr_id. One Completion
 * Queue, polled four at a time by the thread that posts.
 */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define POLL 4
#define WINDOW 8 /* chains in flight on a pair, NCCL_NET_MAX_REQUESTS */
#define CTS_BYTES 64

struct pairs {
	struct flow *senders, *receivers;
	uint32_t n;
};

static void grant(struct driver *d, struct flow *sender, struct flow *receiver)
{
	struct ibv_recv_wr recv = { .wr_id = receiver->posts % NCCL_SLOTS };
	int err;

	if (post_recv(d, receiver->q, &recv, 1, &err) != 1)
		fail(d, "ibv_post_recv on 0x%x: %s", receiver->q->qpn, strerror(err));
	flow_post(d, receiver);
	sender->credit = receiver->posts;
}

static void grant_all(struct driver *d, struct plan *p)
{
	struct pairs *pairs = p->private;

	for (uint32_t i = 0; i < pairs->n; i++) {
		struct flow *s = &pairs->senders[i], *r = &pairs->receivers[i];

		while (r->posts < s->posts + WINDOW && flow_fits(r) && !d->failed &&
		       queue_recv_outstanding(r->q) < r->q->recv_depth)
			grant(d, s, r);
	}
}

static void open_pair(struct driver *d, struct completion_queue *cq, struct flow *sender,
		      struct flow *receiver, uint32_t pairs)
{
	struct queue_attr attr = {
		.send_cq = cq, .recv_cq = cq, .depth = d->opt.depth, .recv_depth = 2 * WINDOW
	};
	struct queue *a = queue_open(d, cq->dev, &attr), *b = queue_open(d, cq->dev, &attr);

	queue_connect(d, a, b->qpn);
	queue_connect(d, b, a->qpn);
	flow_init(d, sender, a);
	sender->last_op = IBV_WR_RDMA_WRITE_WITH_IMM;
	sender->wr_ids = WR_ID_SLOT;
	sender->credit = 0;
	sender->limit = d->opt.chain * WINDOW < d->opt.depth ? d->opt.chain * WINDOW : d->opt.depth;
	flow_init(d, receiver, b);
	receiver->op = receiver->last_op = IBV_WR_RDMA_WRITE;
	receiver->wr_ids = WR_ID_SLOT;
	receiver->chain = 1;
	receiver->size = CTS_BYTES;
	/* Signaled when the slot is the queue's turn, so that the Send Queue never fills. */
	receiver->signal_every = pairs > 1 ? pairs : 2;
	receiver->keep_tail = true;
}

static void check_received(struct driver *d, const struct pairs *pairs)
{
	for (uint32_t i = 0; i < pairs->n && !d->failed; i++) {
		const struct flow *s = &pairs->senders[i], *r = &pairs->receivers[i];

		if (get(&r->q->n.recv_completions) != s->posts)
			fail(d, "%llu chains were sent to 0x%x and %llu received",
			     (unsigned long long)s->posts, r->q->qpn,
			     (unsigned long long)get(&r->q->n.recv_completions));
	}
}

int run_nccl(struct driver *d)
{
	uint32_t n = d->opt.qps;
	struct device *dev = device_open(d, d->opt.device, 0);
	struct completion_queue *cq = cq_open(d, dev, n * 2 * (d->opt.depth + 2 * WINDOW), false);
	struct flow *flows = calloc(n * 2, sizeof(*flows));
	struct pairs pairs = { .senders = flows, .receivers = flows + n, .n = n };
	struct plan plan = { .flows = flows,
			     .nflows = n,
			     .cqs = &cq,
			     .ncqs = 1,
			     .poll = POLL,
			     .rate = d->opt.rate,
			     .turn = grant_all,
			     .private = &pairs };
	struct plan rest = { .flows = flows + n, .nflows = n, .cqs = &cq, .ncqs = 1, .poll = POLL };

	if (!flows)
		return -1;
	prctl(PR_SET_NAME, "NCCL Progress 0");
	for (uint32_t i = 0; i < n; i++)
		open_pair(d, cq, &pairs.senders[i], &pairs.receivers[i], n);
	drive(d, &plan);
	drain(d, &rest);
	check_received(d, &pairs);
	return 0;
}
