/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the programs of the lab have in common: they end with what failed. */

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *check(void *result, const char *what)
{
	if (!result) {
		perror(what);
		exit(1);
	}
	return result;
}

/* For functions of verbs that return an errno. */
static inline void check_errno(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(1);
	}
}

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = check(ibv_get_device_list(NULL), "ibv_get_device_list");

	for (int i = 0; devices[i]; i++)
		if (!strcmp(ibv_get_device_name(devices[i]), name))
			return check(ibv_open_device(devices[i]), "ibv_open_device");
	fprintf(stderr, "no device %s\n", name);
	exit(1);
}
