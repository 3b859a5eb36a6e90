/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the CQs of libmlx5, as the device writes them. */
#include "mlx5_queues.h"

/* The format of CQ entries, 0 or 1. */
static int format = 1;

/* Completes an entry and hands it over: its last word, with the bit that says
 * whose it is, comes last. */
static void hand_over(int cq, struct mlx5_cqe64 entry, int kind)
{
	char *object = (char *)made.cq[cq] - CQ_VERBS, *ring = AT(object, CQ_BUF_ADDR, char *);
	char *at = ring + (produced[cq] % ENTRIES + 1) * size_of(cq) - sizeof(entry);
	uint32_t last;

	entry.op_own = kind << 4 | (produced[cq] / ENTRIES & 1);
	memcpy(&last, (char *)&entry + 60, 4);
	memcpy(at, &entry, 60);
	__atomic_store_n(&AT(at, 60, uint32_t), last, __ATOMIC_RELEASE);
	produced[cq]++;
}

static int any_syndrome(void)
{
	static const uint8_t known[] = { 1,    2,    4,	   5,	 5,    5,    5,	   6,	0x10,
					 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x22, 0x77 };

	return known[any(sizeof(known))];
}

static void spoil_entry(struct mlx5_cqe64 *entry)
{
	struct mlx5_err_cqe *error = (struct mlx5_err_cqe *)entry;

	/* Not the vendor's code of a page fault: that completes nothing. */
	error->vendor_err_synd = any(0x90);
	error->syndrome = any_syndrome();
}

static uint32_t index_of(struct owner *o, int shared)
{
	return format ? o->uidx : shared ? o->srqn : 0;
}

/* The device stamps what did not fail: in the place of the stamp, errors have
 * something else. The test knows the stamp by the wr_id. */
static uint64_t stamped(struct mlx5_cqe64 *entry, uint64_t id, int error)
{
	if (!error)
		entry->timestamp = htobe64(~id);
	return id;
}

static void sent(int cq, struct owner *o, struct mlx5_cqe64 entry, int error)
{
	static const uint8_t operations[] = { MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE_IMM,
					      MLX5_OPCODE_SEND,	      MLX5_OPCODE_SEND_IMM,
					      MLX5_OPCODE_SEND_INVAL, MLX5_OPCODE_TSO,
					      MLX5_OPCODE_RDMA_READ,  MLX5_OPCODE_ATOMIC_CS,
					      MLX5_OPCODE_ATOMIC_FA,  MLX5_OPCODE_UMR };
	char *wq = (char *)o->qp + QP_SQ;
	uint32_t slot = o->sent % SLOTS;

	AT(wq, WQ_WRID, uint64_t *)[slot] = stamped(&entry, new_id(SEND_QUEUE), error);
	AT(wq, WQ_WQE_HEAD, unsigned *)[slot] = o->sent;
	AT(wq, WQ_WR_DATA, unsigned *)[slot] = any(2) ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV;
	entry.wqe_counter = htobe16(o->sent++);
	entry.sop_drop_qpn = htobe32(operations[any(sizeof(operations))] << 24 | o->qpn);
	entry.srqn_uidx = htobe32(index_of(o, 0));
	hand_over(cq, entry, error ? MLX5_CQE_REQ_ERR : MLX5_CQE_REQ);
}

static void received(int cq, struct owner *o, struct mlx5_cqe64 entry, int error)
{
	static const uint8_t kinds[] = { MLX5_CQE_RESP_WR_IMM, MLX5_CQE_RESP_SEND,
					 MLX5_CQE_RESP_SEND_IMM, MLX5_CQE_RESP_SEND_INV };
	uint32_t slot = o->received % SLOTS;

	if (o->srq)
		AT(o->srq, SRQ_WRID, uint64_t *)
	[slot] = stamped(&entry, new_id(SHARED_QUEUE), error);
	else AT((char *)o->qp + QP_RQ, WQ_WRID, uint64_t *)[slot] =
		stamped(&entry, new_id(RECV_QUEUE), error);
	/* The format 0 tells a shared queue by its number. */
	entry.wqe_counter = htobe16(o->srq ? slot : o->received);
	o->received++;
	entry.sop_drop_qpn = htobe32(o->qpn);
	entry.srqn_uidx = htobe32(index_of(o, o->srq != NULL));
	hand_over(cq, entry, error ? MLX5_CQE_RESP_ERR : kinds[any(sizeof(kinds))]);
}

static struct mlx5_cqe64 any_entry(void)
{
	struct mlx5_cqe64 entry;
	size_t i;

	for (i = 0; i < sizeof(entry); i++)
		((uint8_t *)&entry)[i] = any(256);
	entry.app = 0;
	entry.byte_cnt = htobe32(any(1 << 20));
	return entry;
}

int queues_produce(int cq, int good)
{
	struct mlx5_cqe64 entry = any_entry();
	struct owner *o = &owners[2 * cq + any(2)];
	int error = !good && any(4) == 0;

	if (error)
		spoil_entry(&entry);
	if (any(2))
		sent(cq, o, entry, error);
	else
		received(cq, o, entry, error);
	return 1;
}

int queues_unknown(int cq)
{
	static const uint8_t kinds[] = { MLX5_CQE_REQ, MLX5_CQE_RESP_SEND, MLX5_CQE_REQ_ERR,
					 MLX5_CQE_RESP_ERR, MLX5_CQE_NO_PACKET };
	struct mlx5_cqe64 entry = any_entry();

	spoil_entry(&entry);
	entry.sop_drop_qpn = htobe32(0xbad);
	entry.srqn_uidx = htobe32(format ? 0xbad : 0);
	hand_over(cq, entry, kinds[any(sizeof(kinds))]);
	return 1;
}

/* A shared receive queue that matches tags got a message whose tag nobody
 * waits for. */
int queues_rare(int cq)
{
	enum { TAG_MATCHING = 1, NO_TAG = 4 };
	struct mlx5_cqe64 entry = any_entry();
	struct owner *o = &owners[2 * cq + 1];

	entry.app = TAG_MATCHING;
	entry.app_op = NO_TAG;
	entry.wqe_counter = htobe16(o->received++ % SLOTS);
	entry.sop_drop_qpn = htobe32(o->qpn);
	entry.srqn_uidx = htobe32(index_of(o, 1));
	hand_over(cq, entry, MLX5_CQE_NO_PACKET);
	return 1;
}

/* An entry whose index is known and whose number is not is delivered in the
 * format 1 only. */
void queues_learn(poll_function *poll)
{
	struct mlx5_cqe64 entry = any_entry();
	struct ibv_wc wc[2];
	int i;

	entry.wqe_counter = 0;
	entry.sop_drop_qpn = htobe32(MLX5_OPCODE_SEND << 24 | 0xbad);
	entry.srqn_uidx = htobe32(owners[0].uidx);
	hand_over(0, entry, MLX5_CQE_REQ);
	format = poll(made.cq[0], 2, wc) == 1;
	for (i = 0; i < QPS && !format; i++)
		AT(owners[i].qp, QP_RSN, uint32_t) = owners[i].qpn;
}
