/* SPDX-License-Identifier: Apache-2.0 */
/* When a run starts, pauses and ends. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
	(void)number;
	stop_requested = 1;
}

void control_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

bool stopped(void)
{
	return stop_requested;
}

/* The first failure is the one that is told; the run ends. */
void fail(struct driver *d, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&d->mutex);
	if (!d->failed) {
		va_start(args, format);
		vsnprintf(d->failure, sizeof(d->failure), format, args);
		va_end(args);
		d->failed = true;
	}
	pthread_mutex_unlock(&d->mutex);
}

void sleep_ns(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (nanosleep(&ts, &ts) && errno == EINTR && !stopped())
		;
}

bool sleep_until(uint64_t ns)
{
	uint64_t now = now_ns();

	if (now >= ns)
		return false;
	sleep_ns(ns - now);
	return true;
}

static void write_ready(struct driver *d)
{
	int fd;

	d->ready = true;
	if (!d->opt.ready_file)
		return;
	fd = open(d->opt.ready_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		fail(d, "--ready-file %s: %s", d->opt.ready_file, strerror(errno));
		return;
	}
	dprintf(fd, "%d\n", getpid());
	close(fd);
}

void run_start(struct driver *d)
{
	const struct options *o = &d->opt;

	sysroot_write(d);
	if (!o->midstream)
		write_ready(d);
	sleep_ns(o->start_delay_ms * 1000000ull);
	while (o->wait_file && access(o->wait_file, F_OK) && !stopped())
		sleep_ns(2000000);
	d->start_ns = now_ns();
	d->end_ns = o->seconds ? d->start_ns + (uint64_t)(o->seconds * 1e9) : UINT64_MAX;
	d->next_pause = o->pause_after;
	d->pause_ns = o->pause_at_ms ? d->start_ns + o->pause_at_ms * 1000000ull : UINT64_MAX;
}

bool run_more(struct driver *d)
{
	if (stopped() || d->failed)
		return false;
	if (d->opt.requests && get(&d->posted) >= d->opt.requests)
		return false;
	return now_ns() < d->end_ns;
}

void run_tick(struct driver *d)
{
	if (!d->ready && get(&d->posted))
		write_ready(d);
}

bool run_quiet(const struct driver *d)
{
	return now_ns() < d->start_ns + d->opt.warmup_quiet_ms * 1000000ull;
}

bool pause_due(struct driver *d)
{
	if (now_ns() >= d->pause_ns)
		return true;
	return d->opt.pause_after && get(&d->posted) >= d->next_pause;
}

uint64_t pause_begin(struct driver *d)
{
	d->next_pause = get(&d->posted) + d->opt.pause_after;
	if (now_ns() >= d->pause_ns)
		d->pause_ns = UINT64_MAX;
	return now_ns() + d->opt.pause_ms * 1000000ull;
}
