/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider whose poll_cq functions have the shapes of those in rdma-core.
 * Each takes completion entries from a ring that the driver fills.
 */
#include "poll.h"

#define NOINLINE __attribute__((noinline))
extern void verbs_set_ops(void *context, const void *ops);

static inline struct cqe *next(struct cq *cq)
{
	if (cq->tail == __atomic_load_n(&cq->head, __ATOMIC_ACQUIRE))
		return NULL;
	return &cq->ring[cq->tail & cq->mask];
}

static inline int fill(struct cq *cq, struct wc *wc, struct cqe *cqe)
{
	struct qp *qp = &cq->qps[cqe->qp & 3];

	wc->qp_num = qp->number;
	wc->wc_flags = 0;
	switch (cqe->kind) {
	case SEND:
		wc->opcode = 0;
		wc->wr_id = qp->ids[cqe->id & 63] + cqe->id;
		wc->status = 0;
		break;
	case RECV:
		wc->opcode = 128;
		wc->byte_len = cqe->length;
		wc->wr_id = cqe->id;
		wc->status = 0;
		wc->src_qp = cqe->extra;
		break;
	case IMM:
		wc->opcode = 129;
		wc->wc_flags = 2;
		wc->imm = __builtin_bswap32(cqe->extra);
		wc->byte_len = cqe->length;
		wc->wr_id = cqe->id;
		wc->status = 0;
		break;
	case ERROR:
		wc->status = 12;
		wc->vendor_err = cqe->extra;
		wc->wr_id = cqe->id;
		if (cqe->extra == 77)
			abort();
		break;
	case FLUSH:
		wc->status = 5;
		wc->wr_id = cqe->id;
		break;
	default:
		return -2;
	}
	qp->type++;
	return 0;
}

/* mlx5: everything in one loop, an error code beside the count. */
int poll_inline(struct cq *cq, int ne, struct wc *wc)
{
	int npolled, err = 0;

	pthread_spin_lock(&cq->lock);
	for (npolled = 0; npolled < ne; ++npolled) {
		struct cqe *cqe = next(cq);

		if (!cqe) {
			err = -1;
			break;
		}
		++cq->tail;
		err = fill(cq, wc + npolled, cqe);
		if (err)
			break;
	}
	cq->doorbell = cq->tail;
	pthread_spin_unlock(&cq->lock);
	return err == -2 ? err : npolled;
}

/* rxe: a copy and two variables of the loop. */
int poll_copy(struct cq *cq, int ne, struct wc *wc)
{
	int npolled;

	pthread_spin_lock(&cq->lock);
	for (npolled = 0; npolled < ne; npolled++, wc++) {
		struct cqe *cqe = next(cq);

		if (!cqe)
			break;
		memcpy(wc, cqe, 24);
		wc->vendor_err = 0;
		__atomic_store_n(&cq->tail, cq->tail + 1, __ATOMIC_RELEASE);
	}
	pthread_spin_unlock(&cq->lock);
	return npolled;
}

/* erdma: entries that are no completions are skipped. */
int poll_skip(struct cq *cq, int ne, struct wc *wc)
{
	int npolled = 0;
	struct cqe *cqe;

	pthread_spin_lock(&cq->lock);
	while (npolled < ne && (cqe = next(cq))) {
		struct wc *now = wc + npolled;

		++cq->tail;
		if (cqe->kind == SKIP || cqe->qp > 3)
			continue;
		now->wr_id = cqe->id;
		now->wc_flags = 0;
		now->opcode = cqe->kind;
		now->status = cqe->kind == ERROR ? 4 : 0;
		now->byte_len = __builtin_bswap32(cqe->length);
		now->vendor_err = cqe->extra;
		now->qp_num = cqe->qp;
		npolled++;
	}
	pthread_spin_unlock(&cq->lock);
	return npolled;
}

static NOINLINE int poll_one(struct cq *cq, struct qp **qp, struct wc *wc)
{
	struct cqe *cqe = next(cq);

	if (!cqe)
		return -1;
	++cq->tail;
	*qp = &cq->qps[cqe->qp & 3];
	return fill(cq, wc, cqe);
}

/* hns, mlx4: one function for each completion. */
int poll_called(struct cq *cq, int ne, struct wc *wc)
{
	struct qp *qp = NULL;
	int npolled, err = 0;

	pthread_spin_lock(&cq->lock);
	for (npolled = 0; npolled < ne; ++npolled) {
		err = poll_one(cq, &qp, wc + npolled);
		if (err)
			break;
	}
	if (npolled || err == -2)
		cq->doorbell = cq->tail;
	pthread_spin_unlock(&cq->lock);
	return err == -2 ? err : npolled;
}

static NOINLINE int poll_ring(struct cq *cq, int ne, struct wc *wc)
{
	int n = 0;

	while (n < ne) {
		struct cqe *cqe = next(cq);

		if (!cqe)
			break;
		++cq->tail;
		if (fill(cq, wc, cqe))
			continue;
		n++;
		wc++;
	}
	return n;
}

static NOINLINE int flush_ring(struct cq *cq, int ne, struct wc *wc)
{
	int n;

	for (n = 0; n < ne && cq->head != cq->tail; n++, wc++) {
		wc->wr_id = cq->ring[cq->tail++ & cq->mask].id;
		wc->status = 5;
		wc->qp_num = cq->shift;
	}
	return n;
}

/* bnxt_re: functions that deliver several, and their sum. */
int poll_sum(struct cq *cq, int ne, struct wc *wc)
{
	int n, left;

	pthread_spin_lock(&cq->lock);
	n = poll_ring(cq, ne, wc);
	left = ne - n;
	if (left && cq->flush)
		n += flush_ring(cq->flush, left, wc + n);
	pthread_spin_unlock(&cq->lock);
	return n;
}

/* qedr: a turn of the loop says how many it delivered. */
int poll_turns(struct cq *cq, int ne, struct wc *wc)
{
	int done = 0;

	pthread_spin_lock(&cq->lock);
	while (ne) {
		struct cqe *cqe = next(cq);
		int count = 0;

		if (!cqe)
			break;
		++cq->tail;
		switch (cqe->kind) {
		case SKIP:
			break;
		case ERROR:
			wc->status = cqe->extra;
			wc->wr_id = cqe->id;
			wc->qp_num = cqe->qp;
			count = 1;
			break;
		default:
			if (fill(cq, wc, cqe) == 0)
				count = 1;
		}
		ne -= count;
		wc += count;
		done += count;
	}
	pthread_spin_unlock(&cq->lock);
	return done;
}

/* What is left to deliver is counted down. */
int poll_down(struct cq *cq, int ne, struct wc *wc)
{
	int left = ne;

	pthread_spin_lock(&cq->lock);
	while (left > 0) {
		struct cqe *cqe = next(cq);

		if (!cqe)
			break;
		++cq->tail;
		if (fill(cq, wc, cqe))
			continue;
		wc++;
		left--;
	}
	pthread_spin_unlock(&cq->lock);
	return ne - left;
}

static int post_stub(void *qp, void *wr, void **bad)
{
	struct wr {
		uint64_t id;
		struct wr *next;
		uint32_t bad;
	} *w;
	struct qp *q = qp;

	for (w = wr; w; w = w->next) {
		if (w->bad) {
			*bad = w;
			return ENOMEM;
		}
		q->ids[w->id & 63] = w->id;
	}
	return 0;
}

struct table {
	void *members[COUNT];
};
#define TABLE(name)                                                                                \
	static const struct table table_##name = {                                                 \
		.members = { [POLL] = poll_##name, [POST] = post_stub }                            \
	};
POLL_FUNCTIONS(TABLE)

void *poll_alloc_context(void *context)
{
#define SET(name) verbs_set_ops(context, &table_##name);
	POLL_FUNCTIONS(SET)
	return context;
}
