/* SPDX-License-Identifier: Apache-2.0 */

/* Stands for a program that has rdma-core linked in: functions of a driver, and,
 * unless UNMARKED, the text by which libibverbs is known. */

#include <stdio.h>

struct queue {
	int posted, done;
};

__attribute__((noinline)) int drv_post_send(struct queue *qp, const int *wr, const int **bad)
{
	if (qp->posted > 15) {
		*bad = wr;
		return 12;
	}
	qp->posted += *wr;
	return 0;
}

__attribute__((noinline)) int drv_post_recv(struct queue *qp, const int *wr, const int **bad)
{
	*bad = wr;
	return qp->posted;
}

__attribute__((noinline)) int drv_poll_cq(struct queue *cq, int entries, int *wc)
{
	int n = 0;

	while (n < entries && cq->done > 0) {
		wc[n++] = cq->done--;
	}
	return n;
}

/* A second driver. */
__attribute__((noinline)) int other_poll_cq(struct queue *cq, int entries, int *wc)
{
	return cq->posted ? drv_poll_cq(cq, entries - 1, wc) : -1;
}

__attribute__((noinline)) int other_post_recv(struct queue *qp, const int *wr, const int **bad)
{
	return qp->done > 7 ? drv_post_recv(qp, wr, bad) : 12;
}

__attribute__((noinline)) int other_post_send(struct queue *qp, const int *wr, const int **bad)
{
	qp->done++;
	return *wr > 3 ? drv_post_send(qp, wr, bad) : 22;
}

/* What libibverbs has for drivers without one. */
__attribute__((noinline)) int no_post_srq_recv(struct queue *srq, const int *wr, const int **bad)
{
	*bad = wr + srq->done;
	return 95;
}

/* The members of struct verbs_context_ops that matter, in their order, with room for
 * the others. */
struct operations {
	void *before[40];
	int (*poll_cq)(struct queue *, int, int *);
	int (*post_recv)(struct queue *, const int *, const int **);
	int (*post_send)(struct queue *, const int *, const int **);
	void *post_srq_ops, *post_srq_recv;
	void *after[20];
};

const struct operations drv_operations = {
	.poll_cq = drv_poll_cq,
	.post_recv = drv_post_recv,
	.post_send = drv_post_send,
};

/* In two tables, one of them for another version of the device. */
const struct operations other_operations = {
	.post_recv = other_post_recv,
	.post_send = other_post_send,
};
const struct operations other_operations_v1 = { .poll_cq = other_poll_cq };

#ifdef CROSSED
/* Has the functions that post in each other's places. */
const struct operations crossed_operations = {
	.poll_cq = drv_poll_cq,
	.post_recv = (void *)drv_post_send,
	.post_send = (void *)drv_post_recv,
};
#else
#define crossed_operations drv_operations
#endif

/* No table of a driver: two functions, and no more than a word of 0 beside them. */
const struct {
	const char *name;
	int (*function)(struct queue *, int, int *);
	void *none[2];
	const char *end;
} callback = { "drv", other_poll_cq, {}, "other" };

const struct operations *volatile used[] = { &drv_operations, &other_operations,
					     &other_operations_v1, &crossed_operations };
const void *volatile kept = &callback;

int main(int argc, char **argv)
{
	struct queue queue = { 0 };
	const int *bad = NULL;
	int wc[4];

#ifndef UNMARKED
	puts("class/infiniband_verbs/abi_version");
#endif
	drv_post_send(&queue, &argc, &bad);
	drv_post_recv(&queue, &argc, &bad);
	other_post_send(&queue, &argc, &bad);
	other_poll_cq(&queue, argc, wc);
	no_post_srq_recv(&queue, &argc, &bad);
	used[0]->post_send(&queue, &argc, &bad);
	return drv_poll_cq(&queue, argc, wc) + (bad != NULL);
}
