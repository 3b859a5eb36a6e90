/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Send Queues that fill. A post is refused in the middle of a chain: the requests
 * before *bad_wr are posted, the others are posted again later. Or no post is
 * refused, and completions are asked for so rarely that all wait for one.
 */
#include "scenarios.h"

#include <errno.h>
#include <string.h>

#define SIGNAL_EVERY 4

static void post_until_full(struct driver *d, struct flow *f)
{
	int err = 0;

	while (!err && !d->failed) {
		uint32_t n;

		flow_build(f, f->chain, false);
		n = post_send(d, f->q, f->wrs, f->chain, &err);
		f->posts++;
		if (err == (n == f->chain ? 0 : ENOMEM))
			continue;
		fail(d, "ibv_post_send on 0x%x: %s after %u of %u", f->q->qpn, strerror(err), n,
		     f->chain);
	}
}

/* While nothing is to be slow there is one chain at a time. */
static void post_some(struct driver *d, struct flow *f)
{
	if (!run_quiet(d))
		post_until_full(d, f);
	else if (flow_fits(f))
		flow_post(d, f);
}

int run_enomem(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	for (uint32_t i = 0; i < s.plan.nflows; i++) {
		s.flows[i].signal_every = SIGNAL_EVERY;
		s.flows[i].limit = s.flows[i].chain;
	}
	run_start(d);
	while (run_more(d)) {
		run_tick(d);
		for (uint32_t i = 0; i < s.plan.nflows; i++)
			post_some(d, &s.flows[i]);
		while (!poll_cq(d, s.cq, s.plan.poll) && !d->failed)
			;
	}
	post_tails(d, &s.plan);
	drain(d, &s.plan);
	for (uint32_t i = 0; i < s.plan.nflows && !stopped(); i++)
		if (!get(&s.flows[i].q->n.rejected_posts))
			fail(d, "0x%x never refused a post", s.flows[i].q->qpn);
	return 0;
}

/* Of as many requests as the queue holds, the last one asks for a completion. */
static void signal_rarely(struct driver *d, struct plan *p)
{
	for (uint32_t i = 0; i < p->nflows && !run_quiet(d); i++) {
		p->flows[i].limit = p->flows[i].q->depth;
		p->flows[i].signal_every = p->flows[i].q->depth;
	}
}

int run_unsignaled(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	for (uint32_t i = 0; i < s.plan.nflows; i++) {
		s.flows[i].limit = SIGNAL_EVERY;
		s.flows[i].signal_every = SIGNAL_EVERY;
	}
	s.plan.turn = signal_rarely;
	drive(d, &s.plan);
	return 0;
}
