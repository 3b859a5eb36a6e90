/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of sends on one queue, and the loop that drives several of them. */
#ifndef VERBSIM_FLOW_H
#define VERBSIM_FLOW_H

#include "driver.h"

enum wr_ids {
	WR_ID_SEQUENCE, /* every request its own */
	WR_ID_CONSTANT, /* perftest: one for all */
	WR_ID_SLOT,	/* NCCL: one for the whole chain, and soon again */
};

#define NCCL_SLOTS 256

struct flow {
	struct queue *q;
	uint32_t chain;	       /* requests of a post */
	uint32_t signal_every; /* 0: only the last of a chain */
	uint32_t limit;	       /* requests that may be outstanding */
	enum ibv_wr_opcode op, last_op;
	uint64_t size, wr_id_base;
	uint32_t sges;
	enum wr_ids wr_ids;
	struct ibv_ah *ah; /* UD */
	uint32_t remote_qpn;
	uint64_t posts, credit; /* chains posted, and how many may be */
	uint64_t wr_id_period;	/* WR_ID_SEQUENCE goes round after so many, 0: never */
	uint64_t evict_post;	/* the post whose list is out of memory, from 1; 0: none */
	bool keep_tail;		/* leave unsignaled requests behind at the end, as NCCL does */
	uint32_t longest;	/* room in the arrays, at least chain */
	struct ibv_send_wr *wrs;
	struct ibv_sge *sgl;
};

struct plan {
	struct flow *flows;
	struct completion_queue **cqs;
	uint32_t nflows, ncqs;
	uint32_t nslow; /* 1: the last flow is slow, and gets slow_share of the posts */
	double slow_share, slow_due;
	int poll;	   /* entries of a poll */
	double rate;	   /* posts a second of all flows, 0: as fast as it goes */
	uint64_t paced;	   /* posts so far */
	uint32_t rotation; /* the flow that is next */
	uint64_t next_spike;
	bool gathered;					       /* the poll of --gather is over */
	void (*turn)(struct driver *d, struct plan *p);	       /* before the posts of a turn */
	void (*before_poll)(struct driver *d, struct plan *p); /* before polls */
	void *private;
};

/* A flow with the defaults of the command line. */
void flow_init(struct driver *d, struct flow *f, struct queue *q);
/* Makes a chain of n in f->wrs; the last is signaled when the flow says so or with close. */
void flow_build(struct flow *f, uint32_t n, bool close);
bool flow_fits(const struct flow *f);
/* Posts one chain; a refusal is a failure. */
void flow_post(struct driver *d, struct flow *f);
/* Frees what it posts from, not its queue. */
void flow_free(struct flow *f);

/* Runs the plan from start to drained end. */
void drive(struct driver *d, struct plan *p);
void poll_all(struct driver *d, struct plan *p);
/* Polls until nothing signaled is outstanding; a failure after 10 s. */
void drain(struct driver *d, struct plan *p);
void post_tails(struct driver *d, struct plan *p);

#endif
