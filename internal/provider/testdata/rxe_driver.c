/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls rxe_poll_cq of a real librxe on queues made by hand: rxe_driver LIBRARY
 * ADDRESS EMPTY. The protocol is that of poll_driver. The layouts are those of
 * rdma-core's providers/rxe/rxe.h and rxe_queue.h, the same from 44 to 65: the
 * queue that the kernel fills is behind a pointer in the CQ.
 */
#define _GNU_SOURCE
#include "poll.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

enum { CQ_QUEUE = 0x130, CQ_LOCK = 0x138, LOG2 = 0, MASK = 4, PRODUCER = 0x80, CONSUMER = 0x100, DATA = 0x180, ENTRIES = 256 };

typedef int poll_function(void *, int, struct wc *);

static uint64_t seed = 88172645463325252ull;

static uint32_t any(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % n);
}

static uint32_t *word(char *at, int offset) { return (uint32_t *)(at + offset); }

static char *queue_of(char *cq)
{
	char *queue;

	memcpy(&queue, cq + CQ_QUEUE, sizeof(queue));
	return queue;
}

static char *new_cq(void)
{
	char *cq = calloc(1, 4096), *queue = calloc(1, DATA + ENTRIES * 64);

	*word(queue, LOG2) = 6;
	*word(queue, MASK) = ENTRIES - 1;
	memcpy(cq + CQ_QUEUE, &queue, sizeof(queue));
	pthread_spin_init((pthread_spinlock_t *)(cq + CQ_LOCK), 0);
	return cq;
}

static void produce(char *cq, uint32_t n)
{
	static uint64_t id;
	char *queue = queue_of(cq);

	while (n-- && ((*word(queue, PRODUCER) - *word(queue, CONSUMER)) & (ENTRIES - 1)) < 250) {
		uint32_t at = *word(queue, PRODUCER);
		struct wc *wc = (struct wc *)(queue + DATA + 64 * (at & (ENTRIES - 1)));
		int i;

		for (i = 0; i < 12; i++)
			word((char *)wc, 0)[i] = any(1u << 31);
		wc->wr_id = ++id;
		wc->status = any(4) ? 0 : any(23);
		wc->opcode = any(3) ? any(7) : 128;
		__atomic_store_n(word(queue, PRODUCER), (at + 1) & (ENTRIES - 1), __ATOMIC_RELEASE);
	}
}

static void finish(void)
{
	static const char zero[56];

	fwrite(zero, sizeof(zero), 1, stdout);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	struct link_map *map;
	poll_function *poll;
	char *cqs[3] = { new_cq(), new_cq(), new_cq() };
	struct wc wc[32];
	long empty, i;
	int n, k;

	if (argc < 4 || !library || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
		fprintf(stderr, "rxe_driver: %s\n", dlerror());
		return 2;
	}
	poll = (poll_function *)(map->l_addr + strtoul(argv[2], NULL, 0));
	empty = atol(argv[3]);
	puts("ready");
	fflush(stdout);
	getchar();
	for (i = 0; i < 6000; i++) {
		char *cq = cqs[any(3)];

		if (any(3) == 0)
			produce(cq, any(20));
		memset(wc, 0, sizeof(wc));
		n = poll(cq, any(16) + 1, wc);
		for (k = 0; k < n; k++) {
			uint64_t address = (uint64_t)(uintptr_t)cq;

			fwrite(&address, 8, 1, stdout);
			fwrite(&wc[k], sizeof(*wc), 1, stdout);
		}
	}
	for (i = 0; i < 3; i++)
		*word(queue_of(cqs[i]), CONSUMER) = *word(queue_of(cqs[i]), PRODUCER);
	finish();
	getchar();
	for (i = 0; i < empty; i++)
		if (poll(cqs[i % 3], 16, wc))
			return 3;
	finish();
	getchar();
	return 0;
}
