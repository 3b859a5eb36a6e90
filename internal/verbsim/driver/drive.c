/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that posts and polls, as the progress thread of NCCL does. */
#include "flow.h"

#include <string.h>

/* The time that the device is given beyond its latency. */
#define GATHER_NS 20000000
#define DRAIN_NS 10000000000ull
/* What a late turn makes up for, in seconds and posts, so that no storm follows a pause. */
#define BURST_SECONDS 0.002
#define BURST_POSTS 4

void poll_all(struct driver *d, struct plan *p)
{
	for (uint32_t i = 0; i < p->ncqs; i++)
		while (poll_cq(d, p->cqs[i], p->poll) == p->poll)
			;
}

static uint64_t in_flight(const struct plan *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->nflows; i++)
		sum += get(&p->flows[i].q->signaled_out);
	return sum;
}

void drain(struct driver *d, struct plan *p)
{
	uint64_t limit = now_ns() + DRAIN_NS;

	while (in_flight(p) && !d->failed) {
		if (p->before_poll)
			p->before_poll(d, p);
		poll_all(d, p);
		if (now_ns() > limit)
			fail(d, "%llu signaled requests have no completion after 10 s",
			     (unsigned long long)in_flight(p));
	}
	/* Receives of the last messages may be on another queue. */
	poll_all(d, p);
}

static bool has_tail(const struct flow *f)
{
	const struct queue *q = f->q;

	return q->head != q->tail && !f->keep_tail &&
	       !q->fifo[(q->head - 1) & q->fifo_mask].signaled;
}

/* The unsignaled requests at the end get a signaled one behind them. */
void post_tails(struct driver *d, struct plan *p)
{
	drain(d, p); /* the Send Queues may be full */
	for (uint32_t i = 0; i < p->nflows; i++) {
		struct flow *f = &p->flows[i];
		int err;

		if (!has_tail(f) || d->failed)
			continue;
		flow_build(f, 1, true);
		if (!post_send(d, f->q, f->wrs, 1, &err))
			fail(d, "ibv_post_send of the last on 0x%x: %s", f->q->qpn, strerror(err));
		f->posts++;
	}
}

/* Arms a spike on the first flow: its next request is late. */
static void spike(struct driver *d, struct plan *p)
{
	const struct options *o = &d->opt;
	struct queue *q = p->flows[0].q;
	struct verbsim_effect late = { .delay_ns = (uint64_t)(o->spike_us * 1000) };
	struct spike *s;

	if (!o->spikes_per_second || q->spike || run_quiet(d) || now_ns() < p->next_spike)
		return;
	p->next_spike = now_ns() + (uint64_t)(1e9 / o->spikes_per_second);
	if (d->book.nspikes == MAX_SPIKES || d->api->arm(q->qp, &late))
		return;
	s = &d->book.spikes[d->book.nspikes++];
	*s = (struct spike){
		.q = q, .delay_ns = late.delay_ns, .armed_ns = now_ns(), .index = q->head
	};
	q->spike = s;
}

static uint64_t allowance(const struct driver *d, struct plan *p)
{
	uint64_t due, burst;

	if (!p->rate)
		return UINT64_MAX;
	due = (uint64_t)((double)(now_ns() - d->start_ns) * p->rate / 1e9);
	burst = BURST_POSTS + (uint64_t)(p->rate * BURST_SECONDS);
	if (due > p->paced + burst)
		p->paced = due - burst;
	return due > p->paced ? due - p->paced : 0;
}

/* The flow that is next: the slow one when a post is due to it. */
static struct flow *next_flow(struct plan *p, uint32_t i)
{
	uint32_t others = p->nflows - p->nslow;

	return p->slow_due >= 1 ? &p->flows[others] : &p->flows[(p->rotation + i) % others];
}

/* Every request of the slow flow is late by the same time, so none waits for another. */
static void slow_down(struct driver *d, struct plan *p, struct flow *f)
{
	struct verbsim_effect late = { .delay_ns = (uint64_t)(d->opt.spike_us * 1000) };

	if (!p->nslow)
		return;
	p->slow_due += p->slow_share;
	if (f != &p->flows[p->nflows - 1])
		return;
	p->slow_due -= 1;
	if (d->api->arm(f->q->qp, &late))
		fail(d, "a request of --slow-share could not be made late");
}

static void post_turn(struct driver *d, struct plan *p)
{
	uint64_t left = allowance(d, p);

	for (uint32_t i = 0; i < p->nflows && left && !d->failed; i++) {
		struct flow *f = next_flow(p, i);

		if (!flow_fits(f))
			continue;
		slow_down(d, p, f);
		flow_post(d, f);
		p->paced++;
		left--;
	}
	p->rotation++;
}

static void pause_turn(struct driver *d, struct plan *p)
{
	if (!pause_due(d))
		return;
	post_tails(d, p);
	drain(d, p);
	/* Progress threads go on polling while there is nothing to send. */
	for (uint64_t end = pause_begin(d); now_ns() < end && !d->failed; sleep_ns(1000000))
		poll_all(d, p);
}

/*
 * Lets --gather requests become outstanding, waits until the device is done with
 * them, and takes them in one poll. Whether polls have to wait for that.
 */
static bool gather(struct driver *d, struct plan *p)
{
	const struct options *o = &d->opt;
	int got;

	if (!o->gather || p->gathered || get(&d->posted) < o->gather_after)
		return false;
	if (in_flight(p) < o->gather)
		return true;
	sleep_ns((uint64_t)(o->latency_us * 1000) + GATHER_NS);
	got = poll_cq(d, p->cqs[0], (int)o->gather);
	if (got != (int)o->gather)
		fail(d, "--gather %u: one poll found %d completions", o->gather, got);
	p->gathered = true;
	return false;
}

void drive(struct driver *d, struct plan *p)
{
	run_start(d);
	while (run_more(d)) {
		run_tick(d);
		pause_turn(d, p);
		if (p->turn)
			p->turn(d, p);
		spike(d, p);
		post_turn(d, p);
		if (p->before_poll)
			p->before_poll(d, p);
		if (!gather(d, p))
			poll_all(d, p);
		if (d->opt.nap_us && !run_quiet(d))
			sleep_ns((uint64_t)(d->opt.nap_us * 1000));
	}
	if (d->opt.gather && !p->gathered)
		fail(d, "--gather %u: so many requests were never outstanding", d->opt.gather);
	post_tails(d, p);
	drain(d, p);
}
