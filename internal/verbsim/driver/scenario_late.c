/* SPDX-License-Identifier: Apache-2.0 */
/* The device is done in time; the thread is asleep, or busy with something else. */
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

static void be_late(struct driver *d, struct plan *p)
{
	uint64_t ns = (uint64_t)(d->opt.late_us * 1000);
	struct flow *f = &p->flows[0];
	uint64_t *last = p->private;

	if (run_quiet(d) || f->q->head == f->q->tail || f->posts < *last + EVERY)
		return;
	*last = f->posts;
	if (f->posts / EVERY % 2)
		sleep_ns(ns);
	else
		compute(ns);
}

int run_late(struct driver *d)
{
	uint64_t last = 0;
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.before_poll = be_late;
	s.plan.private = &last;
	drive(d, &s.plan);
	return 0;
}
