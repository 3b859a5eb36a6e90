/* SPDX-License-Identifier: Apache-2.0 */
/* Completion Queues: a ring that the device fills and poll_cq empties. */
#include "sim.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#define MAX_CQE (1 << 20)

/* ibv_create_cq fills context, channel and cq_context, and makes the mutex. */
struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct sim_cq *cq;

	(void)comp_vector;
	if (cqe < 1 || cqe > MAX_CQE || channel) {
		/* Events come from the kernel, so there are none: poll. */
		errno = channel ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->mask = sim_pow2((uint32_t)cqe) - 1;
	cq->depth = (uint32_t)cqe;
	cq->ring = calloc(cq->mask + 1, sizeof(*cq->ring));
	if (!cq->ring || pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE)) {
		free(cq->ring);
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->dev = sim_device_of(context);
	cq->ibv.cqe = cqe;
	return &cq->ibv;
}

int sim_destroy_cq(struct ibv_cq *ibcq)
{
	struct sim_cq *cq = (struct sim_cq *)ibcq;

	pthread_spin_destroy(&cq->lock);
	free(cq->ring);
	free(cq);
	return 0;
}

int sim_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	(void)solicited_only;
	return EOPNOTSUPP;
}

#ifdef SIM_MLX5_CQE
/* The device counts at 156.25 MHz from some moment on. */
static void stamp(struct sim_cqe *cqe)
{
	cqe->entry.timestamp = htobe64(cqe->due / 32 * 5 + cqe->due % 32 * 5 / 32 + 0x123456789);
	cqe->entry.sop_drop_qpn = htobe32(0x0a000000 | cqe->qpn);
}
#endif

/* A full queue is in error for good, as with hardware: the program made it too small. */
void sim_cq_push(struct sim_cq *cq, const struct sim_cqe *cqe)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);

	if (head - tail >= cq->depth) {
		atomic_store(&cq->overrun, 1);
		return;
	}
	cq->ring[head & cq->mask] = *cqe;
#ifdef SIM_MLX5_CQE
	stamp(&cq->ring[head & cq->mask]);
#endif
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
}

/* Takes the completions of a queue that is destroyed or reset out of the ring. */
void sim_cq_clean(struct sim_cq *cq, const struct sim_qp *qp)
{
	uint32_t head = cq->head;
	uint32_t kept = cq->tail;

	for (uint32_t i = cq->tail; i != head; i++) {
		struct sim_cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->qp != qp) {
			cq->ring[kept++ & cq->mask] = *cqe;
			continue;
		}
		/* A buffer of a shared queue goes back although nobody saw it. */
		if (cqe->rq && cqe->rq != &qp->rq)
			atomic_fetch_add(&cqe->rq->freed, 1);
	}
	cq->head = kept;
}
