/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of completions, in memory that is reserved at the start and touched
 * as it is needed. When nobody asked for the file, a ring is enough.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define RING (1u << 18)

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p != MAP_FAILED)
		return p;
	perror("verbsim: reserving memory for the truth");
	exit(1);
}

void book_open(struct book *b, const struct options *o)
{
	b->keep = o->truth_records ? o->max_records : 0;
	b->ring = RING;
	b->records = reserve((b->keep + b->ring) * sizeof(*b->records));
	b->slow = reserve(MAX_SLOW * sizeof(*b->slow));
	b->spikes = reserve(MAX_SPIKES * sizeof(*b->spikes));
	b->slow_ns = (uint64_t)(o->truth_slow_us * 1000);
}

uint64_t book_reserve(struct book *b)
{
	return atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
}

struct record *book_record(struct book *b, uint64_t number)
{
	if (number < b->keep)
		return &b->records[number];
	return &b->records[b->keep + (number - b->keep) % b->ring];
}

void book_slow(struct book *b, struct queue *q, const struct record *r)
{
	uint64_t i;

	if (r->poll_after - r->post_before <= b->slow_ns)
		return;
	i = atomic_fetch_add_explicit(&b->slow_next, 1, memory_order_relaxed);
	if (i < MAX_SLOW)
		b->slow[i] = (struct slow){ q, *r };
}
