/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of libmlx5 (providers/mlx5/mlx5.h of rdma-core). Entries of a CQ
 * are as the device writes them (infiniband/mlx5dv.h). Every CQ has a QP and a
 * QP with a shared receive queue of its own. poll_cq finds them by the number of
 * the QP in the format of CQ entries 0, by an index of the user in format 1; the
 * library has a function for each.
 */
#include "mlx5_queues.h"

#include <stdio.h>

enum { TABLE_SHIFT = 12, TABLE_SIZE = 1 << TABLE_SHIFT, BLOCK = 64, NEED_LOCK = 8 };

struct table_entry {
	void **table;
	int count;
};

static char *context;
static void *post_qp, *post_srq;
struct owner owners[QPS];
uint32_t produced[CQS];
struct queues made;

static void enter(int table, uint32_t number, void *object)
{
	struct table_entry *entry =
		&AT(context, table, struct table_entry) + (number >> TABLE_SHIFT);

	if (!entry->table)
		entry->table = zeroed(TABLE_SIZE * sizeof(void *));
	entry->table[number & (TABLE_SIZE - 1)] = object;
	entry->count++;
}

static void lock_make(void *object, int offset)
{
	pthread_spin_init(&AT(object, offset, pthread_spinlock_t), 0);
	AT(object, offset + NEED_LOCK, int) = 1;
}

int size_of(int cq)
{
	return cq == CQS - 1 ? 128 : 64;
}

static void *cq_make(int n)
{
	char *cq = zeroed(CQ_SIZE), *ring = zeroed(ENTRIES * 128);
	struct ibv_cq *verbs = &AT(cq, CQ_VERBS, struct ibv_cq);
	int i;

	for (i = 0; i < ENTRIES; i++)
		ring[(i + 1) * size_of(n) - 1] = (char)(MLX5_CQE_INVALID << 4);
	verbs->context = &AT(context, CONTEXT_VERBS, struct ibv_context);
	verbs->cqe = ENTRIES - 1;
	AT(cq, CQ_BUF_ADDR, void *) = ring;
	AT(cq, CQ_ACTIVE, void *) = cq + CQ_BUF;
	AT(cq, CQ_CQN, uint32_t) = 7 + n;
	AT(cq, CQ_DBREC, void *) = zeroed(64);
	AT(cq, CQ_CQE_SZ, int) = size_of(n);
	lock_make(cq, CQ_LOCK);
	return cq;
}

static void wq_make(char *wq, unsigned count, unsigned most)
{
	AT(wq, WQ_WRID, void *) = zeroed(count * 8);
	AT(wq, WQ_WQE_HEAD, void *) = zeroed(count * 4);
	AT(wq, WQ_WR_DATA, void *) = zeroed(count * 4);
	AT(wq, WQ_COUNT, unsigned) = count;
	AT(wq, WQ_MAX_POST, unsigned) = most;
	AT(wq, WQ_MAX_GS, int) = MAX_SGE;
#ifdef WQ_STATE_GS
	AT(wq, WQ_STATE_GS, int) = MAX_SGE;
#endif
	AT(wq, WQ_SHIFT, int) = 6;
	lock_make(wq, WQ_LOCK);
}

static void *qp_make(uint32_t number, struct ibv_cq *cq, struct ibv_srq *srq)
{
	char *qp = zeroed(QP_SIZE), *bf = zeroed(BF_SIZE), *send = zeroed(SLOTS * BLOCK);
	struct ibv_qp *verbs = &AT(qp, QP_VERBS, struct ibv_qp);

	verbs->context = &AT(context, CONTEXT_VERBS, struct ibv_context);
	verbs->send_cq = verbs->recv_cq = cq;
	verbs->srq = srq;
	verbs->qp_num = number;
	verbs->qp_type = IBV_QPT_RC;
	verbs->state = IBV_QPS_RTS;
	AT(qp, QP_IBV_QP, void *) = verbs;
	AT(qp, QP_BUF_ADDR, void *) = zeroed(SLOTS * BLOCK);
	AT(qp, QP_SQ_START, void *) = send;
	AT(qp, QP_DB, void *) = zeroed(64);
	AT(qp, QP_BF, void *) = bf;
	AT(bf, BF_REG, void *) = zeroed(4096);
	AT(bf, BF_BUF_SIZE, unsigned) = 256;
	wq_make(qp + QP_SQ, SLOTS, DEPTH);
	wq_make(qp + QP_RQ, SLOTS, DEPTH);
	AT(qp + QP_SQ, WQ_QEND, void *) = send + SLOTS * BLOCK;
	return qp;
}

/* The requests of a shared receive queue are a linked list. */
static void srq_link(char *srq, int count)
{
	char *buffer = AT(srq, SRQ_BUF_ADDR, char *);
	int i;

	for (i = 0; i < count; i++)
		AT(buffer, i * BLOCK + 2, uint16_t) = htobe16(i + 1);
	AT(srq, SRQ_HEAD, int) = 0;
	AT(srq, SRQ_TAIL, int) = count - 1;
}

static void *srq_make(uint32_t number, int count)
{
	char *srq = zeroed(SRQ_SIZE);

	AT(srq, SRQ_VERBS, struct ibv_srq).context =
		&AT(context, CONTEXT_VERBS, struct ibv_context);
	AT(srq, SRQ_BUF_ADDR, void *) = zeroed(SLOTS * BLOCK);
	AT(srq, SRQ_WRID, void *) = zeroed(SLOTS * 8);
	AT(srq, SRQ_NUMBER, uint32_t) = number;
	AT(srq, SRQ_MAX, int) = count;
	AT(srq, SRQ_MAX_GS, int) = MAX_SGE;
	AT(srq, SRQ_SHIFT, int) = 6;
	AT(srq, SRQ_DB, void *) = zeroed(64);
#ifdef SRQ_WAITQ_HEAD
	AT(srq, SRQ_WAITQ_HEAD, int) = -1;
	AT(srq, SRQ_WAITQ_TAIL, int) = -1;
#endif
#ifdef SRQ_BITMAP
	AT(srq, SRQ_BITMAP, void *) = zeroed(SLOTS / 8);
	AT(srq, SRQ_NWQES, uint32_t) = count;
#endif
	lock_make(srq, SRQ_LOCK);
	srq_link(srq, count);
	return srq;
}

static void owner_make(int n)
{
	struct owner *o = &owners[n];

	o->qpn = 0x2a100 + n;
	o->uidx = 0x3003 + n;
	o->srqn = n % 2 ? 0x4a00 + n : 0;
	if (o->srqn)
		o->srq = srq_make(o->srqn, SLOTS);
	o->qp = qp_make(o->qpn, made.cq[n / 2],
			o->srq ? &AT(o->srq, SRQ_VERBS, struct ibv_srq) : NULL);
	AT(o->qp, QP_RSN, uint32_t) = o->uidx;
	enter(CONTEXT_QP_TABLE, o->qpn, o->qp);
	enter(CONTEXT_UIDX_TABLE, o->uidx, o->qp);
	if (o->srqn)
		enter(CONTEXT_SRQ_TABLE, o->srqn, o->srq);
}

struct queues *queues_make(void)
{
	int i;

	context = zeroed(CONTEXT_SIZE);
	AT(context, CONTEXT_DBG_FP, FILE *) = fopen("/dev/null", "w");
	for (i = 0; i < CQS; i++)
		made.cq[i] = &AT(cq_make(i), CQ_VERBS, struct ibv_cq);
	for (i = 0; i < QPS; i++)
		owner_make(i);
	post_qp = qp_make(0x99, made.cq[0], NULL);
	post_srq = srq_make(0x98, DEPTH);
	made.qp = &AT(post_qp, QP_VERBS, struct ibv_qp);
	made.srq = &AT(post_srq, SRQ_VERBS, struct ibv_srq);
	made.send_rejects = TOO_MANY_SGE | TOO_MANY_WR | BAD_OPCODE | BIG_INLINE | NO_ATOMICS;
	made.recv_rejects = TOO_MANY_SGE | TOO_MANY_WR;
	return &made;
}

void queues_room(void)
{
	AT((char *)post_qp + QP_SQ, WQ_TAIL, unsigned) =
		AT((char *)post_qp + QP_SQ, WQ_HEAD, unsigned);
	AT((char *)post_qp + QP_RQ, WQ_TAIL, unsigned) =
		AT((char *)post_qp + QP_RQ, WQ_HEAD, unsigned);
	srq_link(post_srq, DEPTH);
}

unsigned queues_waiting(int cq)
{
	char *object = (char *)made.cq[cq] - CQ_VERBS;

	return produced[cq] -
	       __atomic_load_n(&AT(object, CQ_CONS_INDEX, uint32_t), __ATOMIC_ACQUIRE);
}
