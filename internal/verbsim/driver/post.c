/* SPDX-License-Identifier: Apache-2.0 */
/* Posting, with the books kept: entries are made before the call, undone after it. */
#include "driver.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t bytes_of(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum;
}

static bool is_signaled(const struct queue *q, const struct ibv_send_wr *wr)
{
	return q->sig_all || (wr->send_flags & IBV_SEND_SIGNALED);
}

static void enter(struct queue *q, const struct ibv_send_wr *wrs, uint32_t n, uint32_t sound)
{
	for (uint32_t i = 0; i < n; i++)
		q->fifo[(q->head + i) & q->fifo_mask] = (struct entry){
			.wr_id = wrs[i].wr_id,
			.bytes = i < sound ? bytes_of(&wrs[i]) : 0,
			.op = (uint16_t)wrs[i].opcode,
			.signaled = is_signaled(q, &wrs[i]),
		};
}

/* How many requests of the array come before bad; all when it is none of them. */
static uint32_t index_of(const struct ibv_send_wr *wrs, uint32_t n, const struct ibv_send_wr *bad)
{
	for (uint32_t i = 0; i < n; i++)
		if (&wrs[i] == bad)
			return i;
	return n;
}

static void count(struct driver *d, struct queue *q, uint32_t n, uint32_t accepted,
		  uint32_t signaled, int err)
{
	add(&q->n.posted, n);
	add(&q->n.undone, n - accepted);
	add(&q->n.signaled, signaled);
	add(&q->n.rejected_posts, err != 0);
	add(&d->posted, accepted);
}

/* Nothing of the list is in memory until the provider reads it, as after a swap. */
static void evict(struct driver *d, struct queue *q, struct ibv_send_wr *wrs)
{
	if (madvise(wrs, q->evict, MADV_DONTNEED))
		fail(d, "taking the list of a post on 0x%x out of memory: %s", q->qpn,
		     strerror(errno));
	q->evict = 0;
}

static int issue(struct queue *q, struct ibv_send_wr *wrs, struct ibv_send_wr **bad)
{
	return q->extended ? post_extended(q, wrs, bad) : ibv_post_send(q->qp, wrs, bad);
}

uint32_t post_unsound(struct driver *d, struct queue *q, struct ibv_send_wr *wrs, uint32_t n,
		      uint32_t sound, int *err)
{
	uint32_t accepted = n, signaled = 0;
	struct ibv_send_wr *bad = NULL;
	uint64_t before, after;

	enter(q, wrs, n, sound);
	if (q->evict)
		evict(d, q, wrs);
	before = now_ns();
	*err = issue(q, wrs, &bad);
	after = now_ns();
	if (*err)
		accepted = index_of(wrs, n, bad);
	for (uint32_t i = 0; i < accepted; i++) {
		struct entry *e = &q->fifo[(q->head + i) & q->fifo_mask];

		e->post_before = before;
		e->post_after = after;
		signaled += e->signaled;
	}
	q->head += accepted;
	add(&q->signaled_out, signaled);
	count(d, q, n, accepted, signaled, *err);
	return accepted;
}

uint32_t post_send(struct driver *d, struct queue *q, struct ibv_send_wr *wrs, uint32_t n, int *err)
{
	return post_unsound(d, q, wrs, n, n, err);
}

uint64_t shared_number(const struct driver *d, uint64_t wr_id, uint32_t imm_data)
{
	return d->opt.overtake_us > 0 ? imm_data : wr_id;
}

static void begin_shared(const struct queue *q, const struct ibv_send_wr *wrs, uint32_t n,
			 struct record *r)
{
	*r = (struct record){
		.wr_id = wrs[n - 1].wr_id,
		.ctx = (uintptr_t)q->dev->ctx,
		.qp_num = q->qpn,
		.requests = n,
		.op = (uint16_t)wrs[n - 1].opcode,
	};
	for (uint32_t i = 0; i < n; i++)
		r->bytes += bytes_of(&wrs[i]);
}

uint32_t post_shared(struct driver *d, struct queue *q, struct ibv_send_wr *wrs, uint32_t n,
		     int *err)
{
	struct record *r =
		book_record(&d->book, shared_number(d, wrs[n - 1].wr_id, wrs[n - 1].imm_data));
	struct ibv_send_wr *bad = NULL;
	uint32_t begun, others, accepted = n;

	begin_shared(q, wrs, n, r);
	add(&q->signaled_out, 1);
	others = atomic_fetch_add(&q->in_post, 1);
	begun = atomic_fetch_add(&q->posts_begun, 1) + 1;
	r->post_before = now_ns();
	*err = issue(q, wrs, &bad);
	/* The completion may have been polled already: these two fields are ours alone. */
	r->post_after = now_ns();
	if (others || atomic_load(&q->posts_begun) != begun)
		r->flags |= RECORD_OVERLAP;
	atomic_fetch_sub(&q->in_post, 1);
	if (*err)
		accepted = index_of(wrs, n, bad);
	if (accepted != n)
		fail(d, "ibv_post_send on shared 0x%x: %s after %u of %u", q->qpn, strerror(*err),
		     accepted, n);
	count(d, q, n, accepted, accepted == n, *err);
	return accepted;
}

static uint32_t recv_index(const struct ibv_recv_wr *wrs, uint32_t n, const struct ibv_recv_wr *bad)
{
	for (uint32_t i = 0; i < n; i++)
		if (&wrs[i] == bad)
			return i;
	return n;
}

uint32_t post_recv(struct driver *d, struct queue *q, struct ibv_recv_wr *wrs, uint32_t n, int *err)
{
	struct ibv_recv_wr *bad = NULL;
	uint64_t before = now_ns(), after;
	uint32_t accepted = n;

	(void)d;
	*err = ibv_post_recv(q->qp, wrs, &bad);
	after = now_ns();
	if (*err)
		accepted = recv_index(wrs, n, bad);
	for (uint32_t i = 0; i < accepted; i++)
		q->recv_fifo[q->recv_head++ & q->recv_mask] =
			(struct recv_entry){ wrs[i].wr_id, before, after };
	add(&q->n.recv_posted, n);
	add(&q->n.recv_undone, n - accepted);
	return accepted;
}

/* A receive of a shared queue is found again by its wr_id, the number of its record. */
uint32_t post_srq(struct driver *d, struct shared_recv *s, struct ibv_recv_wr *wrs, uint32_t n,
		  int *err)
{
	struct ibv_recv_wr *bad = NULL;
	uint64_t before = now_ns(), after;
	uint32_t accepted = n;

	*err = ibv_post_srq_recv(s->srq, wrs, &bad);
	after = now_ns();
	if (*err)
		accepted = recv_index(wrs, n, bad);
	for (uint32_t i = 0; i < accepted; i++)
		*book_record(&d->book, wrs[i].wr_id) = (struct record){
			.wr_id = wrs[i].wr_id,
			.post_before = before,
			.post_after = after,
			.flags = RECORD_RECV,
		};
	add(&s->outstanding, accepted);
	add(&s->n.recv_posted, n);
	add(&s->n.recv_undone, n - accepted);
	return accepted;
}

#define BATCH 16

static void link_recvs(struct ibv_recv_wr *wrs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
}

void top_up(struct driver *d, struct queue *q, uint32_t target)
{
	struct ibv_sge sge = { (uintptr_t)q->dev->buffer, BUFFER_BYTES, q->dev->mr->lkey };
	struct ibv_recv_wr wrs[BATCH];
	int err = 0;

	while (!err && queue_recv_outstanding(q) < target) {
		uint32_t n = target - (uint32_t)queue_recv_outstanding(q);

		n = n < BATCH ? n : BATCH;
		for (uint32_t i = 0; i < n; i++)
			wrs[i] = (struct ibv_recv_wr){ .wr_id = q->recv_head + i,
						       .sg_list = &sge,
						       .num_sge = 1 };
		link_recvs(wrs, n);
		post_recv(d, q, wrs, n, &err);
	}
	if (err)
		fail(d, "ibv_post_recv on 0x%x: %s", q->qpn, strerror(err));
}

void top_up_srq(struct driver *d, struct shared_recv *s, uint32_t target)
{
	struct ibv_sge sge = { (uintptr_t)s->dev->buffer, BUFFER_BYTES, s->dev->mr->lkey };
	struct ibv_recv_wr wrs[BATCH];
	int err = 0;

	while (!err && get(&s->outstanding) < target) {
		uint32_t n = target - (uint32_t)get(&s->outstanding);

		n = n < BATCH ? n : BATCH;
		for (uint32_t i = 0; i < n; i++)
			wrs[i] = (struct ibv_recv_wr){ .wr_id = book_reserve(&d->book),
						       .sg_list = &sge,
						       .num_sge = 1 };
		link_recvs(wrs, n);
		post_srq(d, s, wrs, n, &err);
	}
	if (err)
		fail(d, "ibv_post_srq_recv: %s", strerror(err));
}
