/* SPDX-License-Identifier: Apache-2.0 */
/* The device is done in time; the thread is asleep, busy with something else, busy
 * with another Completion Queue, or held up inside of a post. */
#include "scenarios.h"

#define EVERY 20

static void compute(uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	volatile uint64_t x = 1;

	while (now_ns() < end)
		for (int i = 0; i < 100; i++)
			x = x * 6364136223846793005u + 1;
}

struct lateness {
	uint64_t last; /* posts when it was late the last time */
	bool computes; /* it never sleeps */
};

static void be_late(struct driver *d, struct plan *p)
{
	uint64_t ns = (uint64_t)(d->opt.late_us * 1000);
	struct flow *f = &p->flows[0];
	struct lateness *l = p->private;

	if (run_quiet(d) || f->q->head == f->q->tail || f->posts < l->last + EVERY)
		return;
	l->last = f->posts;
	if (f->posts / EVERY % 2 && !l->computes)
		sleep_ns(ns);
	else
		compute(ns);
}

static int run_lately(struct driver *d, bool computes)
{
	struct lateness l = { .computes = computes };
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.before_poll = be_late;
	s.plan.private = &l;
	drive(d, &s.plan);
	return 0;
}

int run_late(struct driver *d)
{
	return run_lately(d, false);
}

int run_busy(struct driver *d)
{
	return run_lately(d, true);
}

/* One post in so many does not get its doorbell through. */
static void stall_some(struct driver *d, struct plan *p)
{
	bool now = !run_quiet(d) && p->flows[0].posts % EVERY == 0;

	d->api->set_stall(d->devs[0]->ibdev, now ? (uint64_t)(d->opt.late_us * 1000) : 0);
}

int run_stalled(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.turn = stall_some;
	drive(d, &s.plan);
	return 0;
}

/* The thread takes everything from the first Completion Queue, over and over, and
 * looks into the second one only when its completions have waited. */
static void look_elsewhere(struct driver *d, struct plan *p)
{
	uint64_t end = now_ns() + (uint64_t)(d->opt.late_us * 1000);
	struct flow *other = &p->flows[1];
	struct lateness *l = p->private;

	if (run_quiet(d) || other->q->head == other->q->tail || other->posts < l->last + EVERY)
		return;
	l->last = other->posts;
	while (now_ns() < end && !d->failed) {
		if (flow_fits(&p->flows[0]))
			flow_post(d, &p->flows[0]);
		poll_cq(d, p->cqs[0], p->poll);
	}
}

int run_starved(struct driver *d)
{
	struct device *dev = device_open(d, d->opt.device, 0);
	struct completion_queue *cqs[2];
	struct flow flows[2];
	struct lateness l = { 0 };
	struct streams s[2];
	struct plan plan;

	d->opt.qps = 1;
	for (int i = 0; i < 2; i++) {
		streams_open(d, &s[i], dev, 1, false);
		cqs[i] = s[i].cq;
		flows[i] = s[i].flows[0];
	}
	flows[0].limit = 8; /* its own requests do not wait for one another */
	plan = s[0].plan;
	plan.flows = flows;
	plan.nflows = 2;
	plan.cqs = cqs;
	plan.ncqs = 2;
	plan.before_poll = look_elsewhere;
	plan.private = &l;
	drive(d, &plan);
	return 0;
}
