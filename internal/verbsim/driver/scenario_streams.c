/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios that are a stream of sends with one property each. */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL 16
#define GATHER_NS 5000000

static void *array(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p)
		return p;
	fprintf(stderr, "verbsim: out of memory\n");
	exit(1);
}

void streams_open(struct driver *d, struct streams *s, struct device *dev, uint32_t sges,
		  bool sig_all)
{
	uint32_t slow = d->opt.slow_share > 0, n = d->opt.qps + slow;

	s->cq = cq_open(d, dev, d->opt.depth * n, false);
	s->flows = array(n, sizeof(*s->flows));
	for (uint32_t i = 0; i < n; i++) {
		struct queue_attr attr = { .send_cq = s->cq,
					   .recv_cq = s->cq,
					   .depth = d->opt.depth,
					   .room = d->opt.chain,
					   .sges = sges,
					   .sig_all = sig_all };
		struct queue *q = queue_open(d, dev, &attr);

		queue_connect(d, q, REMOTE_QPN);
		flow_init(d, &s->flows[i], q);
		s->flows[i].sges = sges;
	}
	s->plan = (struct plan){ .flows = s->flows,
				 .nflows = n,
				 .cqs = &s->cq,
				 .ncqs = 1,
				 .poll = POLL,
				 .rate = d->opt.rate,
				 .nslow = slow,
				 .slow_share = d->opt.slow_share };
}

int run_stream(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	drive(d, &s.plan);
	return 0;
}

int run_sge32(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 32, false);
	drive(d, &s.plan);
	return 0;
}

int run_sig_all(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, true);
	drive(d, &s.plan);
	return 0;
}

/* perftest: the wr_id is the index of the queue, cq_mod is 100. */
int run_constant(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	for (uint32_t i = 0; i < s.plan.nflows; i++) {
		s.flows[i].wr_ids = WR_ID_CONSTANT;
		s.flows[i].wr_id_base = i;
		s.flows[i].signal_every = d->opt.depth < 100 ? d->opt.depth : 100;
	}
	drive(d, &s.plan);
	return 0;
}

int run_ping(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	for (uint32_t i = 0; i < s.plan.nflows; i++) {
		s.flows[i].wr_ids = WR_ID_CONSTANT;
		s.flows[i].limit = s.flows[i].chain;
	}
	drive(d, &s.plan);
	return 0;
}

static void poll_many(struct driver *d, struct plan *p)
{
	for (int i = 0; i < 1000; i++)
		poll_cq(d, p->cqs[0], p->poll);
}

int run_idle(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.before_poll = poll_many;
	drive(d, &s.plan);
	return 0;
}

/* Lets completions gather and takes them in batches of another size each time. */
static void vary_batch(struct driver *d, struct plan *p)
{
	static const int sizes[] = { 64, 256, 1, 255, 2, 100, 17, 256 };

	(void)d;
	p->poll = sizes[p->rotation % (sizeof(sizes) / sizeof(sizes[0]))];
	sleep_ns(GATHER_NS);
}

int run_poll256(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	for (uint32_t i = 0; i < s.plan.nflows; i++)
		s.flows[i].signal_every = 1;
	s.plan.before_poll = vary_batch;
	drive(d, &s.plan);
	return 0;
}

static void slow_down(struct driver *d, struct plan *p)
{
	(void)p;
	d->api->set_latency(d->devs[0]->ibdev,
			    run_quiet(d) ? 1900 : (uint64_t)(d->opt.latency_us * 1000));
}

int run_slow_device(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.turn = slow_down;
	drive(d, &s.plan);
	return 0;
}

static void alternate(struct driver *d, struct plan *p)
{
	for (uint32_t i = 0; i < p->nflows; i++)
		p->flows[i].chain = p->flows[i].posts % 2 ? d->opt.chain : (d->opt.chain + 7) / 8;
}

/* 1,000 and an eighth of it, rounded to 128 at the default of 1,000. */
static void alternate_deep(struct driver *d, struct plan *p)
{
	if (d->opt.chain != 1000) {
		alternate(d, p);
		return;
	}
	for (uint32_t i = 0; i < p->nflows; i++)
		p->flows[i].chain = p->flows[i].posts % 2 ? 1000 : 128;
}

int run_deep(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	for (uint32_t i = 0; i < s.plan.nflows; i++)
		s.flows[i].longest = d->opt.chain;
	s.plan.turn = alternate_deep;
	drive(d, &s.plan);
	return 0;
}

int run_hostile_chain(struct driver *d)
{
	struct streams s;
	struct flow *f;

	d->opt.qps = 2;
	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	/* The second queue does ordinary work, which must not suffer. */
	f = &s.flows[1];
	f->chain = 1;
	drive(d, &s.plan);
	return 0;
}

static void name_second(const char *first, char *second, size_t len)
{
	size_t n = strlen(first);

	if (n && first[n - 1] >= '0' && first[n - 1] <= '8')
		snprintf(second, len, "%.*s%c", (int)(n - 1), first, first[n - 1] + 1);
	else
		snprintf(second, len, "%s1", first);
}

int run_two_devices(struct driver *d)
{
	struct streams s[2];
	struct completion_queue *cqs[2];
	struct flow *flows = array(d->opt.qps * 2u, sizeof(*flows));
	struct plan plan;
	char second[64];

	name_second(d->opt.device, second, sizeof(second));
	streams_open(d, &s[0], device_open(d, d->opt.device, 0), 1, false);
	d->opt.latency_us *= 2; /* so that a mix-up of the devices is seen in the times */
	streams_open(d, &s[1], device_open(d, second, 0), 1, false);
	d->opt.latency_us /= 2;
	for (uint32_t i = 0; i < d->opt.qps * 2; i++)
		flows[i] = s[i % 2].flows[i / 2];
	cqs[0] = s[0].cq;
	cqs[1] = s[1].cq;
	plan = s[0].plan;
	plan.flows = flows;
	plan.nflows = d->opt.qps * 2;
	plan.cqs = cqs;
	plan.ncqs = 2;
	drive(d, &plan);
	return 0;
}
