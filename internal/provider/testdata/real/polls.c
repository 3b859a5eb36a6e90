/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a function that polls. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>

static int poll_once(struct log *log, int cq, int asked)
{
	struct ibv_wc wc[32];
	int waiting = queues_waiting(cq), n;

	memset(wc, 0, sizeof(wc));
	n = ((poll_function *)function)(queues->cq[cq], asked, wc);
	log->calls++;
	if (n > 0)
		put(log, (struct call){ (uintptr_t)queues->cq[cq], 0, waiting, asked, n, n }, wc);
	return n;
}

static long fill(int cq, int n)
{
	long delivered = 0;

	while (n-- && queues_waiting(cq) < FULL)
		delivered += queues_produce(cq, 0);
	return delivered;
}

static long drain(struct log *log)
{
	long delivered = 0;
	int cq;

	for (cq = 0; cq < CQS; cq++)
		while (queues_waiting(cq))
			delivered += poll_once(log, cq, 16);
	return delivered;
}

void polls(struct log *log)
{
	long expected = 0, delivered = 0;
	int i;

	for (i = 0; i < 6000; i++) {
		int cq = any(CQS);

		if (any(3) == 0)
			expected += fill(cq, any(20));
		delivered += poll_once(log, cq, any(16) + 1);
	}
	check(expected, delivered + drain(log));
}

struct poller {
	struct log log;
	uint64_t seed;
	long expected, delivered;
};

static pthread_mutex_t producing = PTHREAD_MUTEX_INITIALIZER;

static void *poller(void *argument)
{
	struct poller *me = argument;
	int i;

	seed = me->seed;
	for (i = 0; i < 100000; i++) {
		int cq = any(CQS);

		if (any(50) == 0) {
			pthread_mutex_lock(&producing);
			me->expected += fill(cq, any(20));
			pthread_mutex_unlock(&producing);
		}
		me->delivered += poll_once(&me->log, cq, any(16) + 1);
	}
	return NULL;
}

/* Two threads poll the same CQs. */
void threads(struct log *log)
{
	struct poller pollers[2] = { { .seed = 1234567 }, { .seed = 7654321 } };
	long expected = 0, delivered = 0;
	pthread_t thread[2];
	int i;

	for (i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, poller, &pollers[i]))
			abort();
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		append(log, pollers[i].log.bytes, pollers[i].log.size);
		log->calls += pollers[i].log.calls;
		expected += pollers[i].expected;
		delivered += pollers[i].delivered;
	}
	check(expected, delivered + drain(log));
}

/* After a few good completions one of a QP that does not exist. When poll_cq
 * fails for it, what it wrote before is taken as delivered. */
void unknown(struct log *log)
{
	int i;

	for (i = 0; i < 300; i++) {
		struct ibv_wc wc[32];
		int cq = i % CQS, good = i / CQS % 4, k, n, after = 0;

		for (k = 0; k < good; k++)
			queues_produce(cq, 1);
		if (!queues_unknown(cq))
			exit(4);
		for (k = any(3); k > 0; k--)
			after += queues_produce(cq, 1);
		memset(wc, 0, sizeof(wc));
		n = ((poll_function *)function)(queues->cq[cq], 16, wc);
		log->calls++;
		if (n >= 0)
			check(good + after, n);
		put(log,
		    (struct call){ (uintptr_t)queues->cq[cq], 0, good + 1 + after, 16, n,
				   n < 0 ? good : n },
		    wc);
		if (n < 0)
			check(after, poll_once(log, cq, 16));
	}
}

void rare(struct log *log)
{
	long expected = 0, delivered = 0;
	int i;

	for (i = 0; i < 300; i++) {
		expected += queues_rare(i % CQS);
		if (any(3) == 0)
			expected += queues_produce(i % CQS, 1);
		delivered += poll_once(log, i % CQS, any(3) + 1);
	}
	check(expected, delivered + drain(log));
}

void empties(struct log *log)
{
	int i;

	for (i = 0; i < 1000000; i++)
		check(0, poll_once(log, i % CQS, 16));
}
