/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls one poll_cq of poll.c: poll_driver NAME EMPTY. After a line on its
 * input it polls rings that it fills at random, and writes what every call
 * delivered: the address of the CQ and the 48 bytes of each completion. A CQ of
 * 0 ends that. Then it polls EMPTY times in vain, and writes another 0.
 */
#include "poll.h"

#include <stdio.h>

void *poll_alloc_context(void *context);

static uint64_t seed = 88172645463325252ull;

static uint32_t any(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % n);
}

static struct cq *ring(uint32_t number)
{
	struct cq *cq = calloc(1, sizeof(*cq));
	int i;

	cq->mask = 255;
	cq->shift = number;
	cq->ring = calloc(256, sizeof(*cq->ring));
	cq->qps = calloc(4, sizeof(*cq->qps));
	for (i = 0; i < 4; i++)
		cq->qps[i].number = 1000 * number + i;
	pthread_spin_init(&cq->lock, 0);
	return cq;
}

static void produce(struct cq *cq, uint32_t n, int skips)
{
	static uint64_t id;

	while (n-- && cq->head - cq->tail < 250) {
		struct cqe *e = &cq->ring[cq->head & cq->mask];

		e->id = ++id << 8;
		e->qp = any(4);
		e->length = any(1 << 20);
		e->extra = any(70);
		e->kind = any(4);
		if (any(50) == 0)
			e->kind = FLUSH;
		if (skips && any(8) == 0)
			e->kind = SKIP;
		cq->head++;
	}
}

typedef int poll_function(struct cq *, int, struct wc *);

static poll_function *chosen(const char *name)
{
#define CHOOSE(n)                                                                                  \
	if (!strcmp(name, #n))                                                                     \
		return poll_##n;
	POLL_FUNCTIONS(CHOOSE)
	exit(2);
}

static void write_all(struct cq *cq, struct wc *wc, int n)
{
	uint64_t address = (uint64_t)(uintptr_t)cq;
	int i;

	for (i = 0; i < n; i++) {
		fwrite(&address, 8, 1, stdout);
		fwrite(&wc[i], sizeof(*wc), 1, stdout);
	}
}

static void finish(void)
{
	static const char zero[56];

	fwrite(zero, sizeof(zero), 1, stdout);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	poll_function *poll = chosen(argv[1]);
	long empty = atol(argv[2]), i;
	int skips = !strcmp(argv[1], "skip") || !strcmp(argv[1], "sum") ||
		    !strcmp(argv[1], "turns") || !strcmp(argv[1], "down");
	struct cq *cqs[3] = { ring(1), ring(2), ring(3) };
	struct wc wc[32];

	if (argc > 3)
		poll_alloc_context(NULL);
	cqs[0]->flush = ring(4);
	puts("ready");
	fflush(stdout);
	getchar();
	for (i = 0; i < 6000; i++) {
		struct cq *cq = cqs[any(3)];

		if (any(3) == 0)
			produce(cq, any(20), skips);
		if (cq->flush && any(5) == 0)
			produce(cq->flush, any(4), 0);
		memset(wc, 0, sizeof(wc));
		write_all(cq, wc, poll(cq, any(16) + 1, wc));
	}
	for (i = 0; i < 3; i++)
		cqs[i]->tail = cqs[i]->head;
	cqs[0]->flush->tail = cqs[0]->flush->head;
	finish();
	getchar();
	for (i = 0; i < empty; i++)
		if (poll(cqs[i % 3], 16, wc))
			return 3;
	finish();
	getchar();
	return 0;
}
