/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of sysfs that tells a port's rate, in the kernel's words
 * (drivers/infiniband/core/sysfs.c, rate_show, state_show, phys_state_show).
 */
#include "driver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	double gbps;
	const char *text;
} rates[] = {
	{ 10, "10 Gb/sec (4X SDR)" },	{ 20, "20 Gb/sec (4X DDR)" },
	{ 25, "25 Gb/sec (1X EDR)" },	{ 40, "40 Gb/sec (4X QDR)" },
	{ 50, "50 Gb/sec (1X HDR)" },	{ 56, "56 Gb/sec (4X FDR)" },
	{ 100, "100 Gb/sec (4X EDR)" }, { 200, "200 Gb/sec (4X HDR)" },
	{ 400, "400 Gb/sec (4X NDR)" }, { 800, "800 Gb/sec (4X XDR)" },
};

static _Noreturn void die(const char *what, const char *why)
{
	fprintf(stderr, "verbsim: --sysroot: %s: %s\n", what, why);
	exit(1);
}

static const char *rate_text(double gbps)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (fabs(rates[i].gbps - gbps) < 1e-6)
			return rates[i].text;
	die("--rate-gbps", "no InfiniBand port has it: 10 20 25 40 50 56 100 200 400 800");
}

static void make_path(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path, strerror(errno));
		*slash = '/';
	}
}

static void put(struct driver *d, const struct device *dev, const char *name, const char *text)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/ports/1/%s", d->opt.sysroot,
		 dev->name, name);
	make_path(path);
	f = fopen(path, "we");
	if (!f)
		die(path, strerror(errno));
	fprintf(f, "%s\n", text);
	if (fclose(f))
		die(path, strerror(errno));
}

void sysroot_write(struct driver *d)
{
	for (uint32_t i = 0; d->opt.sysroot && i < d->ndevs; i++) {
		put(d, d->devs[i], "rate", rate_text(d->opt.rate_gbps));
		put(d, d->devs[i], "state", "4: ACTIVE");
		put(d, d->devs[i], "phys_state", "5: LinkUp");
		put(d, d->devs[i], "link_layer", "InfiniBand");
	}
}
