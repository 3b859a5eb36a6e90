/* SPDX-License-Identifier: Apache-2.0 */

/* Takes the processor away from whoever has no real-time priority, again and again.
 *
 *     hog BUSY_MILLISECONDS REST_MILLISECONDS */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	struct sched_param before = { .sched_priority = 1 };

	if (argc != 3) {
		fprintf(stderr, "usage: hog BUSY_MILLISECONDS REST_MILLISECONDS\n");
		return 2;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &before)) {
		perror("sched_setscheduler");
		return 1;
	}
	long busy_ms = atol(argv[1]), rest_ms = atol(argv[2]);
	struct timespec rest = { .tv_sec = rest_ms / 1000, .tv_nsec = rest_ms % 1000 * 1000000 };

	for (;;) {
		long long end = now_ns() + busy_ms * 1000000LL;

		while (now_ns() < end)
			;
		nanosleep(&rest, NULL);
	}
}
