/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that exit at once and children that execute another program; half
 * of the time over, the program executes itself with work outstanding. The
 * truth of the first half is in FILE.before-exec, under the same pid.
 */
#include "scenarios.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORK_EVERY_NS 50000000ull
#define LEFT_BEHIND 3

static void child(uint64_t n)
{
	if (n % 2)
		execl("/bin/true", "true", (char *)NULL);
	_exit(0);
}

static void breed(struct driver *d, struct plan *p)
{
	uint64_t *forks = p->private;
	pid_t pid;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (now_ns() < d->start_ns + *forks * FORK_EVERY_NS)
		return;
	pid = fork();
	if (pid < 0)
		fail(d, "fork: %s", strerror(errno));
	if (pid == 0)
		child(*forks);
	++*forks;
}

static void reap(void)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* The arguments again, and the mark of the second half. */
static char **second_arguments(struct driver *d)
{
	static char mark[] = "--after-exec";
	size_t n = 0;
	char **argv;

	while (d->argv[n])
		n++;
	argv = calloc(n + 2, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv, d->argv, n * sizeof(*argv));
	argv[n] = mark;
	return argv;
}

static int become_second(struct driver *d)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char **argv = second_arguments(d);

	d->finished_ns = now_ns();
	if (n < 0 || !argv || !books_balance(d) || truth_write(d, ".before-exec"))
		return -1;
	self[n] = 0;
	execv(self, argv);
	fail(d, "executing %s: %s", self, strerror(errno));
	return -1;
}

int run_fork_exec(struct driver *d)
{
	uint64_t forks = 1;
	struct streams s;

	d->opt.seconds /= 2;
	d->opt.requests = (d->opt.requests + 1) / 2;
	streams_open(d, &s, device_open(d, d->opt.device, 0), 1, false);
	s.plan.turn = breed;
	s.plan.private = &forks;
	if (d->opt.after_exec)
		d->opt.start_delay_ms = 0;
	drive(d, &s.plan);
	reap();
	if (d->opt.after_exec || d->failed || stopped())
		return 0;
	for (int i = 0; i < LEFT_BEHIND; i++)
		flow_post(d, &s.flows[0]);
	return become_second(d);
}
