/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of librxe (providers/rxe/rxe.h of rdma-core): rings shared with the
 * kernel (struct rxe_queue_buf of rdma/rdma_user_rxe.h, older versions call it
 * struct rxe_queue). The kernel fills them with whole completions.
 */
#include "driver.h"

#include <fcntl.h>

enum {
	RING_LOG2 = 0,
	RING_MASK = 4,
	RING_PRODUCER = 128,
	RING_CONSUMER = 256,
	RING_DATA = 384,
	ENTRY_LOG2 = 6,
	REQUEST_LOG2 = 9
};

static char *rings[CQS], *post_rings[3];
static struct queues made;

static uint32_t *producer(char *ring)
{
	return &AT(ring, RING_PRODUCER, uint32_t);
}
static uint32_t *consumer(char *ring)
{
	return &AT(ring, RING_CONSUMER, uint32_t);
}

static void *ring_make(int log2, unsigned entries)
{
	char *ring = zeroed(RING_DATA + ((size_t)entries << log2));

	AT(ring, RING_LOG2, uint32_t) = log2;
	AT(ring, RING_MASK, uint32_t) = entries - 1;
	return ring;
}

static void *wq_make(char *wq)
{
	AT(wq, WQ_QUEUE, void *) = ring_make(REQUEST_LOG2, DEPTH);
	AT(wq, WQ_MAX_SGE, unsigned) = MAX_SGE;
	pthread_spin_init(&AT(wq, WQ_LOCK, pthread_spinlock_t), 0);
	return AT(wq, WQ_QUEUE, void *);
}

struct queues *queues_make(void)
{
	char *qp = zeroed(QP_SIZE), *srq = zeroed(SRQ_SIZE), *context = zeroed(4096);
	int i;

	for (i = 0; i < CQS; i++) {
		char *cq = zeroed(CQ_SIZE);

		rings[i] = AT(cq, CQ_QUEUE, void *) = ring_make(ENTRY_LOG2, ENTRIES);
		pthread_spin_init(&AT(cq, CQ_LOCK, pthread_spinlock_t), 0);
		made.cq[i] = &AT(cq, CQ_VERBS, struct ibv_cq);
	}
	post_rings[0] = wq_make(qp + QP_SQ);
	post_rings[1] = wq_make(qp + QP_RQ);
	post_rings[2] = wq_make(srq + SRQ_RQ);
	made.qp = &AT(qp, QP_VERBS, struct ibv_qp);
	made.srq = &AT(srq, SRQ_VERBS, struct ibv_srq);
	/* Room for the structure around it. */
	made.qp->context = (struct ibv_context *)(context + 2048);
	/* A message about a bad request names the device, which it finds through
	 * the structure around the context: this says that there is one. */
	made.qp->context->device = zeroed(sizeof(struct ibv_device));
	made.qp->context->abi_compat = (void *)-1;
	made.qp->qp_type = IBV_QPT_RC;
	/* A post ends with a write that wakes the kernel. */
	made.qp->context->cmd_fd = open("/dev/null", O_WRONLY);
	made.send_rejects = TOO_MANY_SGE | TOO_MANY_WR | BIG_INLINE;
	made.recv_rejects = TOO_MANY_SGE | TOO_MANY_WR;
	return &made;
}

void queues_learn(poll_function *poll)
{
	(void)poll;
}

void queues_room(void)
{
	int i;

	for (i = 0; i < 3; i++)
		*consumer(post_rings[i]) = *producer(post_rings[i]);
}

unsigned queues_waiting(int cq)
{
	return (*producer(rings[cq]) - __atomic_load_n(consumer(rings[cq]), __ATOMIC_ACQUIRE)) %
	       ENTRIES;
}

int queues_produce(int cq, int good)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_SEND, IBV_WC_RDMA_WRITE,
						      IBV_WC_RDMA_READ, IBV_WC_RECV,
						      IBV_WC_RECV_RDMA_WITH_IMM };
	char *ring = rings[cq];
	uint32_t at = *producer(ring);
	struct ibv_wc *wc = &AT(ring, RING_DATA + ((size_t)at << ENTRY_LOG2), struct ibv_wc);
	size_t i;

	for (i = 0; i < sizeof(*wc); i++)
		((uint8_t *)wc)[i] = any(256);
	wc->opcode = opcodes[any(5)];
	wc->wr_id = new_id(!(wc->opcode & IBV_WC_RECV) ? SEND_QUEUE
			   : any(2)		       ? RECV_QUEUE
						       : SHARED_QUEUE);
	wc->status = good || any(4) ? IBV_WC_SUCCESS : any(IBV_WC_GENERAL_ERR + 1);
	__atomic_store_n(producer(ring), (at + 1) % ENTRIES, __ATOMIC_RELEASE);
	return 1;
}

int queues_unknown(int cq)
{
	(void)cq;
	return 0;
}

int queues_rare(int cq)
{
	(void)cq;
	return 0;
}
