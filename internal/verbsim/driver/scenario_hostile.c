/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of work requests that no sound program makes. The provider refuses
 * them without following a pointer to nowhere, so this program lives on; an
 * observer of post_send must do as well. Ordinary work goes on beside them.
 */
#include "scenarios.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIST 4
#define EVERY_NS 1000000u

struct wild {
	struct flow *flow;
	void *pointers[6];
	uint64_t next;
};

static bool is_time(struct wild *w)
{
	if (now_ns() < w->next)
		return false;
	w->next = now_ns() + EVERY_NS;
	return true;
}

static void expect(struct driver *d, const char *what, int err, uint32_t accepted, uint32_t want)
{
	if (err == EINVAL && accepted == want)
		return;
	fail(d, "%s: %u of %u requests accepted and error %d, wanted %u and EINVAL", what, accepted,
	     LIST, err, want);
}

/* The last points back to the first, to itself, or into the middle. */
static void post_cycle(struct driver *d, struct plan *p)
{
	static const uint32_t targets[] = { 0, LIST - 1, 1 };
	struct wild *w = p->private;
	struct flow *f = w->flow;
	uint32_t accepted;
	int err;

	if (!is_time(w))
		return;
	flow_build(f, LIST, true);
	f->wrs[LIST - 1].next = &f->wrs[targets[f->posts++ % 3]];
	accepted = post_send(d, f->q, f->wrs, LIST, &err);
	expect(d, "a cycle", err, accepted, 0);
}

/* A page after which nothing is mapped. */
static char *cliff(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p + page, page)) {
		fprintf(stderr, "verbsim: mmap: %s\n", strerror(errno));
		exit(1);
	}
	return p + page;
}

static void fill_pointers(struct wild *w)
{
	char *edge = cliff();

	w->pointers[0] = (void *)0x10;
	w->pointers[1] = edge;			     /* not mapped */
	w->pointers[2] = edge - 8;		     /* begins in a page and ends in none */
	w->pointers[3] = (void *)0xffff888000001000; /* the kernel's */
	w->pointers[4] = (void *)0xdead000000000000; /* not canonical */
	w->pointers[5] = (void *)0x7fffffffffff;     /* the last byte of user space */
}

static void post_wild(struct driver *d, struct plan *p)
{
	struct wild *w = p->private;
	struct flow *f = w->flow;
	void *pointer = w->pointers[f->posts / 2 % 6];
	uint32_t accepted;
	int err;

	if (!is_time(w))
		return;
	flow_build(f, LIST, true);
	f->wrs[1].send_flags = IBV_SEND_SIGNALED; /* what is accepted is retired */
	if (f->posts++ % 2) {
		f->wrs[LIST - 1].next = pointer;
		accepted = post_send(d, f->q, f->wrs, LIST, &err);
		expect(d, "a wild next", err, accepted, LIST);
		return;
	}
	f->wrs[2].sg_list = pointer;
	f->wrs[2].num_sge = 1;
	accepted = post_unsound(d, f->q, f->wrs, LIST, 2, &err);
	expect(d, "a wild sg_list", err, accepted, 2);
}

/* An ordinary stream, and one more queue for the hostile lists. */
static struct flow *open_both(struct driver *d, struct streams *s)
{
	struct device *dev = device_open(d, d->opt.device, 1);
	struct streams hostile;
	uint32_t qps = d->opt.qps;

	streams_open(d, s, dev, 1, false);
	d->opt.qps = 1;
	streams_open(d, &hostile, dev, 1, false);
	d->opt.qps = qps;
	hostile.flows[0].longest = LIST;
	return &hostile.flows[0];
}

static void poll_hostile(struct driver *d, struct plan *p)
{
	(void)p;
	poll_cq(d, d->cqs[1], 16);
}

static int run_hostile(struct driver *d, struct streams *s, struct flow *f)
{
	struct completion_queue *cq = d->cqs[1];
	struct plan rest = { .flows = f, .nflows = 1, .cqs = &cq, .ncqs = 1, .poll = 16 };

	s->plan.before_poll = poll_hostile;
	drive(d, &s->plan);
	drain(d, &rest);
	if (!get(&f->q->n.rejected_posts) && !stopped())
		fail(d, "no hostile list was refused");
	return 0;
}

int run_hostile_cycle(struct driver *d)
{
	struct wild wild = { .flow = NULL };
	struct streams s;

	wild.flow = open_both(d, &s);
	s.plan.turn = post_cycle;
	s.plan.private = &wild;
	return run_hostile(d, &s, wild.flow);
}

int run_hostile_pointer(struct driver *d)
{
	struct wild wild = { .flow = NULL };
	struct streams s;

	wild.flow = open_both(d, &s);
	fill_pointers(&wild);
	s.plan.turn = post_wild;
	s.plan.private = &wild;
	return run_hostile(d, &s, wild.flow);
}
