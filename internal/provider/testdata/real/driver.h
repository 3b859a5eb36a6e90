/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver and the queues of a provider know of each other. Each of
 * mlx5.c, rxe.c and erdma.c makes the objects that its provider's functions
 * work on, as zeroed memory in which only the members that these functions look
 * at are set. Where the members are is different in every version: the
 * upper-case names are those of layouts.list, given to the compiler.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <endian.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A CQ holds ENTRIES completions; FULL of them may wait, so that an entry
	 * is never overwritten while another thread still reads it. */
	CQS = 3,
	ENTRIES = 256,
	FULL = 240,
	/* The slots of a work queue for polling. No more than FULL are in use. */
	SLOTS = 1024,
	/* The requests that a work queue for posting holds, and those of the
	 * longest chain that is posted to it. */
	DEPTH = 64,
	CHAIN = DEPTH + 8,
	/* The scatter entries that a queue for posting allows. */
	MAX_SGE = 4,
};

/* Where the wr_id of a completion comes from is in its highest byte. */
enum source { SEND_QUEUE = 1, RECV_QUEUE = 2, SHARED_QUEUE = 3 };

/* Ways to make a post fail, as a mask: too many scatter entries, more requests
 * than the queue holds, an operation that does not exist, a QP in error, more
 * inline data than fits, an atomic operation where there are none. */
enum spoil {
	TOO_MANY_SGE = 1,
	TOO_MANY_WR = 2,
	BAD_OPCODE = 4,
	BAD_STATE = 8,
	BIG_INLINE = 16,
	NO_ATOMICS = 32,
	SPOILS = 6
};

struct queues {
	struct ibv_cq *cq[CQS];
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	/* What makes post_send fail, and post_recv. */
	unsigned send_rejects, recv_rejects;
};

typedef int poll_function(struct ibv_cq *, int, struct ibv_wc *);

/* The objects of the provider. */
struct queues *queues_make(void);
/* Learns by polling what can be learned of the function only so. */
void queues_learn(poll_function *poll);
/* The entries that wait in a CQ. */
unsigned queues_waiting(int cq);
/* Puts a random entry into a CQ; returns whether it will be delivered. With good
 * set it will be. */
int queues_produce(int cq, int good);
/* Puts an entry into a CQ for a QP that does not exist; returns 0 when the
 * provider does not look at that. */
int queues_unknown(int cq);
/* Puts an entry into a CQ that few programs ever see; returns 0 when there are
 * none. */
int queues_rare(int cq);
/* Makes the work queues for posting empty. */
void queues_room(void);

/* What the driver writes of one call. */
struct call {
	/* The first argument. In the end record: 0. */
	uint64_t object;
	/* What a post left in *bad_wr. */
	uint64_t failed;
	/* Entries that waited and that were asked for. */
	int32_t waiting, asked;
	/* The result. In the end record: the number of calls. */
	int32_t returned;
	/* The completions that follow. */
	int32_t delivered;
};

/* What a command is going to write, and how often it called the function. */
struct log {
	char *bytes;
	size_t size, room;
	long calls;
};

/* The objects, and the function that is called. */
extern struct queues *queues;
extern void *function;

/* Adds bytes to a log, or a call and its completions. */
void append(struct log *log, const void *bytes, size_t n);
void put(struct log *log, struct call call, struct ibv_wc *wc);
/* Ends the program when the numbers differ. */
void check(long expected, long got);

/* The commands. */
void polls(struct log *log);
void threads(struct log *log);
void unknown(struct log *log);
void rare(struct log *log);
void empties(struct log *log);
void posts(struct log *log);
void bad_posts(struct log *log);
/* Says which function posts. */
void posts_to(const char *name);

/* A random number below n, of this thread, and what it follows from. */
extern __thread uint64_t seed;
uint32_t any(uint32_t n);
/* A new wr_id. */
uint64_t new_id(enum source from);

#define AT(object, offset, type) (*(type *)((char *)(object) + (offset)))

static inline void *zeroed(size_t size)
{
	void *memory = aligned_alloc(4096, (size + 4095) & ~4095ul);

	if (!memory)
		abort();
	return memset(memory, 0, size);
}

#endif
