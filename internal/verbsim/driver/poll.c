/* SPDX-License-Identifier: Apache-2.0 */
/* Polling, and the check that each completion is the one that had to come. */
#include "driver.h"

static bool receives(uint16_t op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static enum ibv_wc_opcode expected_opcode(uint16_t op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static void mismatch(struct driver *d, const struct ibv_wc *wc, const char *what)
{
	add(&d->mismatches, 1);
	fail(d, "completion of wr_id 0x%llx status %d on 0x%x: %s", (unsigned long long)wc->wr_id,
	     wc->status, wc->qp_num, what);
}

static void count_bytes(struct queue *q, uint16_t op, uint64_t bytes)
{
	add(receives(op) ? &q->n.read_bytes : &q->n.send_bytes, bytes);
}

static void count_status(struct queue *q, enum ibv_wc_status status)
{
	add(&q->n.completions, 1);
	add(&q->n.flushed, status == IBV_WC_WR_FLUSH_ERR);
	add(&q->n.errors, status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR);
}

static void end_spike(struct queue *q, uint32_t index, const struct record *r)
{
	struct spike *s = q->spike;

	/* The spike may have hit an unsignaled request that this one retires. */
	if (!s || (int32_t)(index - (uint32_t)s->index) < 0)
		return;
	s->done = *r;
	q->spike = NULL;
}

/*
 * Takes the request that completed and the unsignaled ones before it off the
 * FIFO. After an error every request has a completion of its own, so that the
 * wr_id says which one it is.
 */
static bool retire(struct driver *d, struct queue *q, const struct ibv_wc *wc, struct record *r)
{
	bool good = wc->status == IBV_WC_SUCCESS;

	while (q->tail != q->head) {
		struct entry *e = &q->fifo[q->tail++ & q->fifo_mask];
		bool last = good ? e->signaled : e->wr_id == wc->wr_id;

		r->requests++;
		r->bytes += e->bytes;
		if (good || !last)
			count_bytes(q, e->op, e->bytes);
		if (!last && e->signaled)
			mismatch(d, wc, "a signaled request before it has not completed");
		if (!last)
			continue;
		r->post_before = e->post_before;
		r->post_after = e->post_after;
		r->op = e->op;
		if (e->signaled)
			atomic_fetch_sub(&q->signaled_out, 1);
		if (e->wr_id != wc->wr_id)
			mismatch(d, wc, "another wr_id was next");
		if (good && wc->opcode != expected_opcode(e->op))
			mismatch(d, wc, "wrong opcode");
		return true;
	}
	mismatch(d, wc, "nothing was outstanding");
	return false;
}

static void send_completed(struct driver *d, struct queue *q, const struct ibv_wc *wc,
			   struct record *r)
{
	if (!retire(d, q, wc, r))
		return;
	add(&q->n.unsignaled_retired, r->requests - 1);
	count_status(q, wc->status);
	*book_record(&d->book, book_reserve(&d->book)) = *r;
	book_slow(&d->book, q, r);
	end_spike(q, q->tail - 1, r);
}

/* The poster may still write post_after and the flag of overlap of the same record. */
static void shared_completed(struct driver *d, struct queue *q, const struct ibv_wc *wc,
			     const struct record *now)
{
	struct record *r = book_record(&d->book, shared_number(d, wc->wr_id, wc->imm_data)),
		      slow = *now;

	if (r->wr_id != wc->wr_id || r->qp_num != q->qpn || r->poll_after) {
		mismatch(d, wc, "no such request is outstanding");
		return;
	}
	if (wc->status == IBV_WC_SUCCESS && wc->opcode != expected_opcode(r->op))
		mismatch(d, wc, "wrong opcode");
	r->poll_before = now->poll_before;
	r->status = now->status;
	r->poll_after = now->poll_after;
	add(&q->n.unsignaled_retired, r->requests - 1);
	count_status(q, wc->status);
	count_bytes(q, r->op, r->bytes);
	slow.post_before = r->post_before;
	slow.bytes = r->bytes;
	slow.requests = r->requests;
	slow.op = r->op;
	book_slow(&d->book, q, &slow);
	atomic_fetch_sub(&q->signaled_out, 1);
}

static void count_recv(struct queue *q, const struct ibv_wc *wc)
{
	add(&q->n.recv_completions, 1);
	add(&q->n.recv_flushed, wc->status == IBV_WC_WR_FLUSH_ERR);
	add(&q->n.recv_errors, wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR);
	if (wc->status == IBV_WC_SUCCESS)
		add(&q->n.recv_bytes, wc->byte_len);
}

static void srq_completed(struct driver *d, struct queue *q, const struct ibv_wc *wc,
			  const struct record *now)
{
	struct record *r = book_record(&d->book, wc->wr_id);
	struct shared_recv *s = d->srq;

	if (r->wr_id != wc->wr_id || !(r->flags & RECORD_RECV) || r->poll_after) {
		mismatch(d, wc, "no such receive is outstanding");
		return;
	}
	r->poll_before = now->poll_before;
	r->poll_after = now->poll_after;
	r->ctx = now->ctx;
	r->qp_num = now->qp_num;
	r->status = now->status;
	r->due = now->due;
	r->requests = 1;
	r->op = OP_RECV;
	r->bytes = wc->status ? 0 : wc->byte_len;
	count_recv(q, wc);
	atomic_fetch_sub(&s->outstanding, 1);
}

static void recv_completed(struct driver *d, struct queue *q, const struct ibv_wc *wc,
			   struct record *r)
{
	struct recv_entry *e;

	if (q->from_srq) {
		srq_completed(d, q, wc, r);
		return;
	}
	if (q->recv_tail == q->recv_head) {
		mismatch(d, wc, "no receive was outstanding");
		return;
	}
	e = &q->recv_fifo[q->recv_tail++ & q->recv_mask];
	if (e->wr_id != wc->wr_id)
		mismatch(d, wc, "another receive was next");
	r->post_before = e->post_before;
	r->post_after = e->post_after;
	r->op = OP_RECV;
	r->flags = RECORD_RECV;
	r->requests = 1;
	r->bytes = wc->status ? 0 : wc->byte_len;
	count_recv(q, wc);
	*book_record(&d->book, book_reserve(&d->book)) = *r;
}

static bool is_recv(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return wc->opcode & IBV_WC_RECV;
	return wc->vendor_err & VERBSIM_VENDOR_RECV;
}

static void completed(struct driver *d, struct completion_queue *cq, const struct ibv_wc *wc,
		      struct record *r)
{
	struct queue *q = queue_find(cq->dev, wc->qp_num);

	if (!q) {
		add(&d->strays, 1);
		fail(d, "completion for 0x%x, which is no queue of ours", wc->qp_num);
		return;
	}
	r->wr_id = wc->wr_id;
	r->ctx = (uintptr_t)cq->dev->ctx;
	r->qp_num = wc->qp_num;
	r->status = (uint16_t)wc->status;
	if (is_recv(wc))
		recv_completed(d, q, wc, r);
	else if (q->shared)
		shared_completed(d, q, wc, r);
	else
		send_completed(d, q, wc, r);
}

int poll_cq_into(struct driver *d, struct completion_queue *cq, int n, struct ibv_wc *wc)
{
	uint64_t before, after;
	int got;

	before = now_ns();
	got = cq->extended ? poll_extended(cq->cq, n, wc, d->queues) : ibv_poll_cq(cq->cq, n, wc);
	after = now_ns();
	add(&cq->polls, 1);
	if (got < 0) {
		fail(d, "ibv_poll_cq returned %d: the queue of %d entries overran", got,
		     cq->cq->cqe);
		return 0;
	}
	if (!got)
		add(&cq->empty, 1);
	for (int i = 0; i < got; i++) {
		struct record r = { .poll_before = before,
				    .poll_after = after,
				    .due = cq->due ? cq->due[i % VERBSIM_DUE] : 0 };

		completed(d, cq, &wc[i], &r);
	}
	add(&cq->delivered, (uint64_t)got);
	return got;
}

int poll_cq(struct driver *d, struct completion_queue *cq, int n)
{
	return poll_cq_into(d, cq, n, cq->wc);
}
