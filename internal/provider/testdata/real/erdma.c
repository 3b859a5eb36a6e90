/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of liberdma (providers/erdma/erdma_verbs.h of rdma-core). Entries of
 * a CQ are as the device writes them (struct erdma_cqe of erdma_hw.h): 8 words,
 * big endian, of which the first holds the owner bit, the operation, the kind of
 * queue and the result. The library drops entries of unknown QPs and entries
 * that complete nothing, without telling anyone.
 */
#include "driver.h"

enum { TABLE_SHIFT = 12, TABLE_SIZE = 1 << TABLE_SHIFT, ENTRY = 32, BLOCK = 32, RECV_BIT = 1 << 8 };

struct table_entry {
	void **table;
	int count;
};

struct owner {
	void *qp;
	uint32_t qpn;
	uint16_t sent, received;
};

static char *context;
static struct owner owners[CQS];
static uint32_t produced[CQS];
static struct queues made;
static char *post_qp;

static void enter(uint32_t number, void *object)
{
	struct table_entry *entry =
		&AT(context, CONTEXT_QP_TABLE, struct table_entry) + (number >> TABLE_SHIFT);

	if (!entry->table)
		entry->table = zeroed(TABLE_SIZE * sizeof(void *));
	entry->table[number & (TABLE_SIZE - 1)] = object;
	entry->count++;
}

static void wq_make(char *wq, unsigned depth)
{
	AT(wq, WQ_BUFFER, void *) = zeroed(SLOTS * BLOCK);
	AT(wq, WQ_DB, void *) = zeroed(64);
	AT(wq, WQ_DEPTH, uint16_t) = depth;
	AT(wq, WQ_WR_TABLE, void *) = zeroed(SLOTS * 8);
	AT(wq, WQ_DB_RECORD, void *) = zeroed(64);
}

static void *qp_make(uint32_t number, unsigned depth)
{
	char *qp = zeroed(QP_SIZE);
	struct ibv_qp *verbs = &AT(qp, QP_VERBS, struct ibv_qp);

	verbs->context = &AT(context, CONTEXT_VERBS, struct ibv_context);
	verbs->qp_num = number;
	verbs->qp_type = IBV_QPT_RC;
	AT(qp, QP_ID, uint32_t) = number;
	pthread_spin_init(&AT(qp, QP_SQ_LOCK, pthread_spinlock_t), 0);
	pthread_spin_init(&AT(qp, QP_RQ_LOCK, pthread_spinlock_t), 0);
	wq_make(qp + QP_SQ, depth);
	wq_make(qp + QP_RQ, depth);
	return qp;
}

struct queues *queues_make(void)
{
	int i;

	context = zeroed(CONTEXT_SIZE);
	for (i = 0; i < CQS; i++) {
		char *cq = zeroed(CQ_SIZE);

		made.cq[i] = &AT(cq, CQ_VERBS, struct ibv_cq);
		made.cq[i]->context = &AT(context, CONTEXT_VERBS, struct ibv_context);
		AT(cq, CQ_DEPTH, uint32_t) = ENTRIES;
		AT(cq, CQ_QUEUE, void *) = zeroed(ENTRIES * ENTRY);
		pthread_spin_init(&AT(cq, CQ_LOCK, pthread_spinlock_t), 0);
		owners[i].qpn = 0x2a100 + i;
		owners[i].qp = qp_make(owners[i].qpn, SLOTS);
		enter(owners[i].qpn, owners[i].qp);
	}
	post_qp = qp_make(0x99, DEPTH);
	made.qp = &AT(post_qp, QP_VERBS, struct ibv_qp);
	made.send_rejects = TOO_MANY_SGE | TOO_MANY_WR | BAD_OPCODE | BAD_STATE | BIG_INLINE;
	made.recv_rejects = TOO_MANY_SGE | TOO_MANY_WR | BAD_STATE;
	return &made;
}

void queues_learn(poll_function *poll)
{
	(void)poll;
}

void queues_room(void)
{
	AT(post_qp + QP_SQ, WQ_CI, uint16_t) = AT(post_qp + QP_SQ, WQ_PI, uint16_t);
	AT(post_qp + QP_RQ, WQ_CI, uint16_t) = AT(post_qp + QP_RQ, WQ_PI, uint16_t);
}

unsigned queues_waiting(int cq)
{
	char *object = (char *)made.cq[cq] - CQ_VERBS;

	return produced[cq] - __atomic_load_n(&AT(object, CQ_CI, uint32_t), __ATOMIC_ACQUIRE);
}

/* The owner bit of an entry is set in the first round. */
static void hand_over(int cq, uint32_t header, uint32_t index, uint32_t qpn)
{
	char *object = (char *)made.cq[cq] - CQ_VERBS;
	uint32_t *entry = AT(object, CQ_QUEUE, uint32_t *) + produced[cq] % ENTRIES * (ENTRY / 4);

	header |= produced[cq] / ENTRIES % 2 ? 0 : 1u << 31;
	entry[1] = htobe32(index);
	entry[2] = htobe32(qpn);
	entry[3] = any(1u << 31);
	entry[4] = htobe32(any(1 << 20));
	__atomic_store_n(&entry[0], htobe32(header), __ATOMIC_RELEASE);
	produced[cq]++;
}

static uint32_t any_result(int good)
{
	/* 17 results are known; a larger one is a general error. */
	return good || any(4) ? 0 : any(20);
}

static void sent(int cq, struct owner *o, int good)
{
	static const uint8_t operations[] = { 0, 1, 2, 3, 9, 11, 13, 16, 17, 18 };
	uint64_t *ids = AT((char *)o->qp + QP_SQ, WQ_WR_TABLE, uint64_t *);

	ids[o->sent % SLOTS] = new_id(SEND_QUEUE);
	hand_over(cq, operations[any(sizeof(operations))] << 16 | any_result(good), o->sent++,
		  o->qpn);
}

static void received(int cq, struct owner *o, int good)
{
	static const uint8_t operations[] = { 4, 5, 6, 12 };
	uint64_t *ids = AT((char *)o->qp + QP_RQ, WQ_WR_TABLE, uint64_t *);

	ids[o->received % SLOTS] = new_id(RECV_QUEUE);
	hand_over(cq, operations[any(sizeof(operations))] << 16 | RECV_BIT | any_result(good),
		  o->received++, o->qpn);
}

int queues_produce(int cq, int good)
{
	struct owner *o = &owners[cq];

	if (!good && any(10) == 0) {
		/* The request before the next one is complete already. */
		hand_over(cq, 0, (uint16_t)(o->sent - 1), o->qpn);
		return 0;
	}
	if (any(2))
		sent(cq, o, good);
	else
		received(cq, o, good);
	return 1;
}

int queues_unknown(int cq)
{
	hand_over(cq, 0, 0, 0xbad);
	return 1;
}

int queues_rare(int cq)
{
	(void)cq;
	return 0;
}
