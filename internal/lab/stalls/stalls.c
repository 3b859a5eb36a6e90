/* SPDX-License-Identifier: Apache-2.0 */

/* Tells when the processor stood still.
 *
 *     stalls MILLISECONDS
 *
 * Sleeps for a few milliseconds again and again, before all other threads, and prints a
 * line when that took so much longer, at once or in parts that lie close together. The
 * guest's clock goes on while the host has something else to do; what waited then seems
 * slow by itself. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REST_NS 5000000L

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	struct sched_param first = { .sched_priority = 50 };
	struct timespec rest = { .tv_nsec = REST_NS };

	if (argc != 2) {
		fprintf(stderr, "usage: stalls MILLISECONDS\n");
		return 2;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &first)) {
		perror("sched_setscheduler");
		return 1;
	}
	printf("watches\n");
	fflush(stdout);
	long long most = atoll(argv[1]) * 1000000, lost = 0;

	for (long long before = now_ns();;) {
		nanosleep(&rest, NULL);
		long long now = now_ns();

		/* What was lost is forgotten while the processor is there. */
		lost += now - before - REST_NS - REST_NS / 2;
		if (lost < 0)
			lost = 0;
		if (lost > most) {
			printf("stood still for %lld ms\n", lost / 1000000);
			fflush(stdout);
			lost = 0;
		}
		before = now;
	}
}
