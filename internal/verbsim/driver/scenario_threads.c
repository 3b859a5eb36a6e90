/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every thread posts on a queue of its own and on queues that it shares with
 * all others. The completions of the shared ones are taken by two pollers. With
 * overtake-us wr_ids may repeat: which request completed is told by its imm_data.
 */
#include "scenarios.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define POLLERS 2
#define SHARED_WINDOW 4 /* chains of one thread on one shared queue */
#define MAX_CHAIN 16
#define DRAIN_NS 10000000000ull
/* wr_ids of unsignaled requests: the number of the record and the place in the chain. */
#define PLACE_SHIFT 48

struct crew {
	struct driver *d;
	struct queue **shared;
	struct completion_queue *shared_cq;
	uint32_t nshared;
	_Atomic bool done;
};

struct poster {
	struct crew *crew;
	struct completion_queue *cq;
	struct flow flow;
	pthread_t thread;
	uint32_t number;
};

static void post_chain(struct driver *d, struct queue *q)
{
	struct ibv_sge sge = { (uintptr_t)q->dev->buffer, (uint32_t)d->opt.size, q->dev->mr->lkey };
	uint32_t n = d->opt.chain < MAX_CHAIN ? d->opt.chain : MAX_CHAIN;
	uint64_t number = book_reserve(&d->book);
	uint64_t id = d->opt.wr_ids && d->opt.overtake_us > 0 ? number % d->opt.wr_ids : number;
	struct ibv_send_wr wrs[MAX_CHAIN];
	int err;

	for (uint32_t i = 0; i < n; i++)
		wrs[i] = (struct ibv_send_wr){
			.wr_id = i + 1 == n ? id : id | (uint64_t)(i + 1) << PLACE_SHIFT,
			.next = i + 1 == n ? NULL : &wrs[i + 1],
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = i + 1 == n ? IBV_SEND_SIGNALED : 0,
			.imm_data = (uint32_t)number,
			.wr.rdma = { 0x10000000, 0x1234 },
		};
	post_shared(d, q, wrs, n, &err);
}

static bool room(const struct crew *c, const struct queue *q)
{
	/* Others may be between this look and their post: one chain of each thread. */
	uint64_t most = c->d->opt.threads * SHARED_WINDOW - c->d->opt.threads;

	return get(&q->signaled_out) < most;
}

static void post_on_shared(struct crew *c)
{
	for (uint32_t i = 0; i < c->nshared; i++)
		if (room(c, c->shared[i]))
			post_chain(c->d, c->shared[i]);
}

static void *poster_main(void *argument)
{
	struct poster *p = argument;
	struct driver *d = p->crew->d;
	struct plan plan = { .flows = &p->flow, .nflows = 1, .cqs = &p->cq, .ncqs = 1, .poll = 8 };
	uint64_t next = d->start_ns;
	char name[16];

	snprintf(name, sizeof(name), "poster %u", p->number);
	prctl(PR_SET_NAME, name);
	while (run_more(d)) {
		if (flow_fits(&p->flow))
			flow_post(d, &p->flow);
		post_on_shared(p->crew);
		poll_all(d, &plan);
		next += d->opt.rate ? (uint64_t)(1e9 / d->opt.rate) : 0;
		if (!sleep_until(next))
			sched_yield();
	}
	drain(d, &plan);
	return NULL;
}

static void *poller_main(void *argument)
{
	struct crew *c = argument;
	struct ibv_wc wc[16];

	memset(wc, 0xa5, sizeof(wc));
	prctl(PR_SET_NAME, "poller");
	while (!c->done)
		if (!poll_cq_into(c->d, c->shared_cq, 16, wc))
			sched_yield();
	return NULL;
}

static void open_shared(struct driver *d, struct crew *c, struct device *dev)
{
	uint32_t depth = d->opt.threads * SHARED_WINDOW * d->opt.chain;

	c->shared_cq = cq_open(d, dev, depth * c->nshared, true);
	c->shared = calloc(c->nshared, sizeof(struct queue *));
	for (uint32_t i = 0; i < c->nshared; i++) {
		struct queue_attr attr = { .send_cq = c->shared_cq,
					   .recv_cq = c->shared_cq,
					   .depth = depth,
					   .shared = true };

		c->shared[i] = queue_open(d, dev, &attr);
		queue_connect(d, c->shared[i], REMOTE_QPN);
	}
}

static void open_poster(struct driver *d, struct poster *p, struct device *dev)
{
	struct queue_attr attr = { .depth = d->opt.depth, .room = d->opt.chain };

	p->cq = attr.send_cq = attr.recv_cq = cq_open(d, dev, d->opt.depth, false);
	flow_init(d, &p->flow, queue_open(d, dev, &attr));
	queue_connect(d, p->flow.q, REMOTE_QPN);
}

static void start(struct driver *d, pthread_t *thread, void *(*main)(void *), void *argument)
{
	int err = pthread_create(thread, NULL, main, argument);

	if (!err)
		return;
	fail(d, "pthread_create: %s", strerror(err));
	exit(1);
}

static void wait_shared(struct driver *d, const struct crew *c)
{
	uint64_t limit = now_ns() + DRAIN_NS;

	for (uint32_t i = 0; i < c->nshared; i++)
		while (get(&c->shared[i]->signaled_out) && !d->failed) {
			if (now_ns() > limit)
				fail(d, "0x%x: not drained after 10 s", c->shared[i]->qpn);
			sleep_ns(1000000);
		}
}

int run_threads(struct driver *d)
{
	struct device *dev = device_open(d, d->opt.device, 0);
	struct crew crew = { .d = d, .nshared = d->opt.qps };
	struct poster *posters = calloc(d->opt.threads, sizeof(*posters));
	pthread_t pollers[POLLERS];

	d->opt.chain = d->opt.chain < MAX_CHAIN ? d->opt.chain : MAX_CHAIN;
	if (!posters)
		return -1;
	open_shared(d, &crew, dev);
	for (uint32_t i = 0; i < d->opt.threads; i++)
		open_poster(d, &posters[i], dev);
	run_start(d);
	for (int i = 0; i < POLLERS; i++)
		start(d, &pollers[i], poller_main, &crew);
	for (uint32_t i = 0; i < d->opt.threads; i++) {
		posters[i].crew = &crew;
		posters[i].number = i;
		start(d, &posters[i].thread, poster_main, &posters[i]);
	}
	run_tick(d);
	for (uint32_t i = 0; i < d->opt.threads; i++)
		pthread_join(posters[i].thread, NULL);
	wait_shared(d, &crew);
	crew.done = true;
	for (int i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	return 0;
}
