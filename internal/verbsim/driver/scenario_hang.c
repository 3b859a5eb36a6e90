/* SPDX-License-Identifier: Apache-2.0 */
/* One request never completes; the other queues go on. */
#include "scenarios.h"

#include <string.h>

#define BEHIND 3

static void hang(struct driver *d, struct plan *p)
{
	struct verbsim_effect never = { .never = 1 };
	struct flow *f = p->private;

	if (f->posts || run_quiet(d))
		return;
	d->api->arm(f->q->qp, &never);
	for (int i = 0; i < 1 + BEHIND; i++)
		flow_post(d, f);
}

int run_hang(struct driver *d)
{
	struct streams s, stuck;
	struct device *dev = device_open(d, d->opt.device, 0);
	uint32_t qps = d->opt.qps;

	streams_open(d, &s, dev, 1, false);
	d->opt.qps = 1;
	streams_open(d, &stuck, dev, 1, false);
	d->opt.qps = qps;
	s.plan.turn = hang;
	s.plan.private = &stuck.flows[0];
	drive(d, &s.plan);
	if (poll_cq(d, stuck.cq, stuck.plan.poll))
		fail(d, "the request that never completes has completed");
	return 0;
}
