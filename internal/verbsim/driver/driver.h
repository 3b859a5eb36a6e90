/* SPDX-License-Identifier: Apache-2.0 */
/* The workload: its devices and queues, and the books it keeps of them. */
#ifndef VERBSIM_DRIVER_H
#define VERBSIM_DRIVER_H

#include "options.h"
#include "verbsim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MAX_POLL 1024
#define MAX_NUMBERS 16384 /* queue pair numbers a simulated device gives out */
#define MAX_DEVICES 2
#define FIRST_QPN 0xa10400u
#define MAX_SLOW (1u << 20)
#define MAX_SPIKES (1u << 16)
#define BUFFER_BYTES (1u << 20)

/* One completion, as it is in the file: 80 bytes, little-endian. */
struct record {
	uint64_t wr_id;
	uint64_t post_before, post_after; /* around the post of the signaled request */
	uint64_t poll_before, poll_after; /* around the poll that delivered it */
	uint64_t ctx, bytes;		  /* bytes of the whole unit */
	uint32_t qp_num, requests;	  /* itself and the unsignaled ones it retires */
	uint16_t op, status;
	uint32_t flags;
	uint64_t due; /* when the device was done, 0: not known */
};

_Static_assert(sizeof(struct record) == 80, "the record is a file format");

#define RECORD_RECV 1u
#define RECORD_OVERLAP 2u
#define OP_RECV 30 /* as in internal/verbs: sends are enum ibv_wr_opcode */

typedef _Atomic uint64_t counter;

/* Of one queue pair or Shared Receive Queue. */
struct counts {
	counter posted, signaled, undone, rejected_posts;
	counter completions, unsignaled_retired, flushed, errors, discarded;
	counter recv_posted, recv_undone;
	counter recv_completions, recv_flushed, recv_errors, recv_discarded;
	counter send_bytes, read_bytes, recv_bytes; /* of successful requests */
};

/* A posted send as its queue remembers it. */
struct entry {
	uint64_t wr_id, bytes, post_before, post_after;
	uint16_t op;
	bool signaled;
};

struct recv_entry {
	uint64_t wr_id, post_before, post_after;
};

struct spike;

struct queue {
	struct ibv_qp *qp; /* NULL once destroyed */
	struct device *dev;
	struct queue *next;
	uint32_t qpn, depth, recv_depth;
	enum ibv_qp_type type;
	bool sig_all, from_srq;
	/*
	 * Several threads post and poll: units are found by wr_id, which is the
	 * number of the record. Otherwise one thread owns the queue and the FIFOs.
	 */
	bool shared;
	bool extended; /* posts are built through ibv_qp_ex */
	uint32_t built, chains, abort_every;
	struct entry *fifo;
	struct recv_entry *recv_fifo;
	uint32_t fifo_mask, recv_mask;
	uint32_t head, tail, recv_head, recv_tail;
	counter signaled_out;	      /* signaled requests that have not completed */
	_Atomic uint32_t in_post;     /* threads that are posting */
	_Atomic uint32_t posts_begun; /* posts ever begun */
	uint64_t created_ns, destroyed_ns;
	struct spike *spike; /* armed, and its request not yet complete */
	size_t evict; /* bytes of the list of the next post that go out of memory before it */
	struct counts n;
};

struct completion_queue {
	struct ibv_cq *cq;
	struct device *dev;
	const uint64_t *due; /* NULL when several threads poll */
	bool extended;	     /* an ibv_cq_ex */
	counter polls, empty, delivered;
	struct ibv_wc wc[MAX_POLL]; /* of its only poller */
};

struct shared_recv {
	struct ibv_srq *srq;
	struct device *dev;
	uint32_t depth;
	counter outstanding;
	struct counts n;
};

struct device {
	const char *name;
	char name_buf[32];
	uint64_t rate_bps;
	struct ibv_device *ibdev;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	void *buffer;
	struct queue *_Atomic queues[MAX_NUMBERS]; /* by number - FIRST_QPN */
};

/* A delay that the workload programmed, and what became of the request. */
struct spike {
	struct queue *q;
	uint64_t delay_ns, armed_ns, index; /* index: the request's place in the FIFO */
	struct record done;		    /* poll_after is 0 until it is complete */
};

struct slow {
	struct queue *q;
	struct record r;
};

struct book {
	struct record *records;
	uint64_t keep, ring; /* records that are kept, and slots that are used again after them */
	counter next;
	struct slow *slow;
	counter slow_next;
	uint64_t slow_ns;
	struct spike *spikes;
	uint32_t nspikes;
};

struct driver {
	struct options opt;
	const struct verbsim_api *api;
	void *provider;
	struct device *devs[MAX_DEVICES];
	uint32_t ndevs;
	struct completion_queue *cqs[256];
	uint32_t ncqs;
	struct shared_recv *srq; /* at most one */
	pthread_mutex_t mutex;	 /* the lists and the failure */
	struct queue *queues;
	struct book book;
	counter posted; /* accepted sends, for the limit */
	counter strays, mismatches;
	uint64_t start_ns, end_ns, finished_ns, next_pause;
	uint64_t pause_ns; /* when --pause-at-ms is due, UINT64_MAX when it is over */
	int64_t realtime_offset_ns;
	bool ready;
	_Atomic bool failed;
	char failure[256];
	char **argv;
};

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void add(counter *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t get(const counter *c)
{
	return atomic_load_explicit((counter *)c, memory_order_relaxed);
}

/* setup.c. These exit with the reason when they cannot. */
void driver_open(struct driver *d);
struct device *device_open(struct driver *d, const char *name, int check_pointers);
struct completion_queue *cq_open(struct driver *d, struct device *dev, uint32_t entries,
				 bool shared);
struct shared_recv *srq_open(struct driver *d, struct device *dev, uint32_t depth);
void driver_close(struct driver *d);

struct queue_attr {
	struct completion_queue *send_cq, *recv_cq;
	struct shared_recv *srq;
	uint32_t depth, recv_depth, sges;
	uint32_t room; /* longest chain that is offered, also when it does not fit */
	enum ibv_qp_type type;
	bool sig_all, shared;
};

/* queue.c */
struct queue *queue_open(struct driver *d, struct device *dev, const struct queue_attr *attr);
/* RESET to RTS; dest is the peer's number, or a number of no local queue: a remote host. */
void queue_connect(struct driver *d, struct queue *q, uint32_t dest);
void queue_error(struct driver *d, struct queue *q);
void queue_reset(struct driver *d, struct queue *q);
/* Asks the queue, which is at RTS, for what the device refuses: nothing changes. */
void queue_refuse(struct driver *d, struct queue *q);
void queue_destroy(struct driver *d, struct queue *q);
struct queue *queue_find(struct device *dev, uint32_t qpn);
uint64_t queue_outstanding(const struct queue *q);
uint64_t queue_recv_outstanding(const struct queue *q);
#define REMOTE_QPN 0x00beefu

/* post.c. Each returns how many of the n requests were accepted; *err is 0 or the errno. */
uint32_t post_send(struct driver *d, struct queue *q, struct ibv_send_wr *wrs, uint32_t n,
		   int *err);
/* As post_send; only the first sound requests have a scatter list that can be read. */
uint32_t post_unsound(struct driver *d, struct queue *q, struct ibv_send_wr *wrs, uint32_t n,
		      uint32_t sound, int *err);
/* A chain on a shared queue; its last request is signaled and its wr_id is the record's number. */
/* The number of the record of a request on a shared queue. */
uint64_t shared_number(const struct driver *d, uint64_t wr_id, uint32_t imm_data);
uint32_t post_shared(struct driver *d, struct queue *q, struct ibv_send_wr *wrs, uint32_t n,
		     int *err);
uint32_t post_recv(struct driver *d, struct queue *q, struct ibv_recv_wr *wrs, uint32_t n,
		   int *err);
uint32_t post_srq(struct driver *d, struct shared_recv *s, struct ibv_recv_wr *wrs, uint32_t n,
		  int *err);
/* Posts receives until target are outstanding; wr_ids count on. */
void top_up(struct driver *d, struct queue *q, uint32_t target);
void top_up_srq(struct driver *d, struct shared_recv *s, uint32_t target);

/* extended.c: as the verbs without ibv_qp_ex and ibv_cq_ex. */
struct ibv_qp *create_extended_qp(struct device *dev, const struct ibv_qp_init_attr *init);
struct ibv_cq *create_extended_cq(struct device *dev, uint32_t entries, bool no_qp_num);
/* Exchanges functions of the queue; twice is nothing. */
void confuse(struct queue *q);
int post_extended(struct queue *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* only: the queue of completions that do not tell theirs. */
int poll_extended(struct ibv_cq *cq, int n, struct ibv_wc *wc, const struct queue *only);

/* poll.c. Both return what was delivered, 0 on failure too. */
int poll_cq(struct driver *d, struct completion_queue *cq, int n);
int poll_cq_into(struct driver *d, struct completion_queue *cq, int n, struct ibv_wc *wc);

/* book.c */
void book_open(struct book *b, const struct options *o);
uint64_t book_reserve(struct book *b);
struct record *book_record(struct book *b, uint64_t number);
void book_slow(struct book *b, struct queue *q, const struct record *r);

/* control.c */
void control_signals(void);
bool stopped(void);
void fail(struct driver *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_start(struct driver *d);
bool run_more(struct driver *d);
void run_tick(struct driver *d); /* once in every turn of a loop that posts */
bool run_quiet(const struct driver *d);
bool pause_due(struct driver *d);
uint64_t pause_begin(struct driver *d);
void sleep_ns(uint64_t ns);
/* False at once when that time has passed. */
bool sleep_until(uint64_t ns);

/* truth.c: 0, or -1 after a message. suffix is appended to the names. */
int truth_write(struct driver *d, const char *suffix);
void summary_print(struct driver *d);
bool books_balance(struct driver *d);

/* exec_broken.c: --broken-exec, comes back only when that fails */
int run_to_broken_exec(struct driver *d, const struct scenario *scenario);

/* sysroot.c: --sysroot, a tree as the kernel would show for the devices */
void sysroot_write(struct driver *d);

#endif
