/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a function that posts. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>

/* Posts of the three kinds differ in their types only: the members of both
 * requests that matter here are at the same place. */
_Static_assert(offsetof(struct ibv_send_wr, next) == offsetof(struct ibv_recv_wr, next), "next");
_Static_assert(offsetof(struct ibv_send_wr, num_sge) == offsetof(struct ibv_recv_wr, num_sge), "num"
											       "_sg"
											       "e");

typedef int post_function(void *, void *, void *);

static void *posted_to;
static int sends;

void posts_to(const char *name)
{
	sends = !strcmp(name, "post_send");
	posted_to = strcmp(name, "post_srq_recv") ? (void *)queues->qp : (void *)queues->srq;
}

static int post(struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return ((post_function *)function)(posted_to, wr, bad);
}

static struct ibv_send_wr *chain(int n)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						      IBV_WR_RDMA_READ };
	static struct ibv_send_wr wr[CHAIN];
	static struct ibv_sge sge[64];
	int i;

	sge[0].length = 64;
	for (i = 0; i < n; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = new_id(SEND_QUEUE),
					      .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = sge,
					      .num_sge = 1 };
		if (sends) {
			wr[i].opcode = opcodes[any(3)];
			wr[i].send_flags = any(2) ? IBV_SEND_SIGNALED : 0;
		}
	}
	return wr;
}

void posts(struct log *log)
{
	struct ibv_send_wr *bad;
	int i;

	for (i = 0; i < 200000; i++) {
		queues_room();
		check(0, post(chain(any(4) ? 1 : 3), &bad));
		log->calls++;
	}
}

static enum spoil any_spoil(unsigned rejects)
{
	enum spoil way;

	do
		way = 1u << any(SPOILS);
	while (!(way & rejects));
	return way;
}

static void spoil(struct ibv_send_wr *wr, enum spoil way)
{
	static char data[1 << 16];
	static struct ibv_sge big = { .length = sizeof(data) };

	queues->qp->state = way == BAD_STATE ? IBV_QPS_ERR : IBV_QPS_RTS;
	switch (way) {
	case TOO_MANY_SGE:
		wr->num_sge = 40;
		/* A read may ignore all but the first. */
		wr->opcode = IBV_WR_SEND;
		return;
	case BAD_OPCODE:
		wr->opcode = 99;
		return;
	case BIG_INLINE:
		big.addr = (uintptr_t)data;
		wr->sg_list = &big;
		wr->opcode = IBV_WR_SEND;
		wr->send_flags |= IBV_SEND_INLINE;
		return;
	case NO_ATOMICS:
		wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		return;
	default:
		return;
	}
}

void bad_posts(struct log *log)
{
	unsigned rejects = sends ? queues->send_rejects : queues->recv_rejects;
	int i, result;

	for (i = 0; i < 3000; i++) {
		enum spoil way = any_spoil(rejects);
		int first = any(4);
		struct ibv_send_wr *wr = chain(way == TOO_MANY_WR ? CHAIN : first + 2), *bad = NULL;

		queues_room();
		spoil(&wr[first], way);
		result = post(wr, &bad);
		if (!result || !bad || (way & ~(TOO_MANY_WR | BAD_STATE) && bad != &wr[first])) {
			fprintf(stderr, "driver: a post spoiled in way %d gave %d\n", way, result);
			exit(5);
		}
		log->calls++;
		put(log, (struct call){ (uintptr_t)posted_to, (uintptr_t)bad, way, 0, result, 0 },
		    NULL);
	}
}
