/* SPDX-License-Identifier: Apache-2.0 */
/* Sound work of many kinds: what is posted changes, and nothing goes wrong. */
#include "scenarios.h"

#define CHANGE_NS 200000000ull

static const uint64_t sizes[] = { 64, 4096, 65536, 1 << 20, 1024 };
static const uint32_t limits[] = { 1, 8, 64 };
static const double rates[] = { 500, 20000, 100, 5000 };

#define PICK(array, i) ((array)[(i) % (sizeof(array) / sizeof((array)[0]))])

/* The lengths of the three tables have no common factor: all pairings come. */
static void vary(struct driver *d, struct plan *p)
{
	uint64_t passed = now_ns() - d->start_ns, step = passed / CHANGE_NS;
	double rate = PICK(rates, step);

	if (p->rate == rate)
		return;
	p->rate = rate;
	/* As if it had been the rate from the start, so that nothing is made up for. */
	p->paced = (uint64_t)((double)passed * rate / 1e9);
	for (uint32_t i = 0; i < p->nflows; i++) {
		p->flows[i].size = PICK(sizes, step);
		p->flows[i].limit = PICK(limits, step);
	}
}

int run_varied(struct driver *d)
{
	struct streams s;

	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.turn = vary;
	drive(d, &s.plan);
	return 0;
}
