/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls one function of a real provider on queues made by hand: driver LIBRARY
 * FUNCTION OFFSET. It reads commands, a letter each, and after each writes what
 * the calls gave: a struct call for every call with something to tell, after it
 * the completions, and in the end one whose object is 0.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

__thread uint64_t seed = 88172645463325252ull;
static uint64_t last_id;
struct queues *queues;
void *function;

uint32_t any(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % n);
}

uint64_t new_id(enum source from)
{
	return (uint64_t)from << 56 | ++last_id;
}

void append(struct log *log, const void *bytes, size_t n)
{
	if (log->size + n > log->room) {
		log->room = (log->size + n) * 2;
		log->bytes = realloc(log->bytes, log->room);
		if (!log->bytes)
			abort();
	}
	memcpy(log->bytes + log->size, bytes, n);
	log->size += n;
}

void put(struct log *log, struct call call, struct ibv_wc *wc)
{
	append(log, &call, sizeof(call));
	append(log, wc, call.delivered * sizeof(*wc));
}

void check(long expected, long got)
{
	if (expected != got) {
		fprintf(stderr, "driver: %ld completions or results, not %ld\n", got, expected);
		exit(3);
	}
}

static void command(char letter, struct log *log)
{
	switch (letter) {
	case 'p':
		return polls(log);
	case 't':
		return threads(log);
	case 'u':
		return unknown(log);
	case 'r':
		return rare(log);
	case 'e':
		return empties(log);
	case 'g':
		return posts(log);
	case 'b':
		return bad_posts(log);
	default:
		exit(6);
	}
}

int main(int argc, char **argv)
{
	/* Providers may print; what is written for the test goes elsewhere. */
	FILE *out = fdopen(dup(1), "w");
	void *library = dlopen(argv[1], RTLD_NOW);
	struct link_map *map;
	char line[16];

	if (argc != 4 || !out || !library || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
		fprintf(stderr, "driver: %s\n", dlerror());
		return 2;
	}
	dup2(open("/dev/null", O_WRONLY), 1);
	/* The code of these libraries is at the same address as in the file. */
	function = (void *)(map->l_addr + strtoul(argv[3], NULL, 0));
	queues = queues_make();
	queues->qp->state = IBV_QPS_RTS;
	posts_to(argv[2]);
	if (!strcmp(argv[2], "poll_cq"))
		queues_learn(function);
	fputs("ready\n", out);
	fflush(out);
	while (fgets(line, sizeof(line), stdin)) {
		struct log log = { 0 };
		struct call end = { 0 };

		command(line[0], &log);
		end.returned = log.calls;
		append(&log, &end, sizeof(end));
		fwrite(log.bytes, log.size, 1, out);
		fflush(out);
		free(log.bytes);
	}
	return 0;
}
