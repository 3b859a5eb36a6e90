/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages from one queue pair to another of the same device with the
 * extended verbs alone: built through ibv_qp_ex, polled through ibv_cq_ex.
 *
 *	extended DEVICE GID-INDEX MESSAGES BYTES
 *
 * Both queue pairs share one Completion Queue and use the same wr_ids.
 */
#include <errno.h>
#include <unistd.h>

#include "../program.h"

#define DEPTH 32
/* Programs exchange addresses with their peers before they connect. */
#define CONNECT_SECONDS 3

static _Noreturn void die(const char *what, int err)
{
	fprintf(stderr, "extended: %s: %s\n", what, strerror(err));
	exit(1);
}

static struct ibv_qp *create(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq_ex *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &attr);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int err;

	if (!qp)
		die("ibv_create_qp_ex", errno);
	err = ibv_modify_qp(qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (err)
		die("ibv_modify_qp to INIT", err);
	return qp;
}

static void connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid,
		       uint8_t gid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = *gid, .sgid_index = gid_index, .hop_limit = 1 } },
	};
	int err = ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER);

	if (err)
		die("ibv_modify_qp to RTR", err);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 18,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		die("ibv_modify_qp to RTS", err);
}

static void receive(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = ibv_post_recv(qp, &wr, &bad);

	if (err)
		die("ibv_post_recv", err);
}

static void send_one(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	int err;

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)mr->addr, bytes);
	err = ibv_wr_complete(ex);
	if (err)
		die("ibv_wr_complete", err);
}

/*
 * Takes one completion, if there is one. Not more: next_poll of librxe before
 * rdma-core 55 does, when it finds nothing, what end_poll then does again.
 */
static void poll_one(struct ibv_cq_ex *cq, uint64_t *sent, uint64_t *received)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int err = ibv_start_poll(cq, &attr);

	if (err == ENOENT)
		return;
	if (err)
		die("ibv_start_poll", err);
	if (cq->status != IBV_WC_SUCCESS)
		die(ibv_wc_status_str(cq->status), EIO);
	*(ibv_wc_read_opcode(cq) & IBV_WC_RECV ? received : sent) += 1;
	ibv_end_poll(cq);
}

int main(int argc, char **argv)
{
	uint64_t messages, sent = 0, received = 0, posted = 0;
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4 * DEPTH,
					       .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_context *ctx;
	struct ibv_cq_ex *cq;
	struct ibv_qp *from, *to;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint32_t bytes;

	if (argc != 5) {
		fprintf(stderr, "usage: extended DEVICE GID-INDEX MESSAGES BYTES\n");
		return 2;
	}
	messages = strtoull(argv[3], NULL, 10);
	bytes = (uint32_t)atoi(argv[4]);
	ctx = open_device(argv[1]);
	if (ibv_query_gid(ctx, 1, atoi(argv[2]), &gid))
		die("the device", errno);
	pd = ibv_alloc_pd(ctx);
	mr = pd ? ibv_reg_mr(pd, calloc(1, bytes), bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
	cq = ibv_create_cq_ex(ctx, &cq_attr);
	if (!mr || !cq)
		die("ibv_reg_mr or ibv_create_cq_ex", errno);
	from = create(ctx, pd, cq);
	to = create(ctx, pd, cq);
	sleep(CONNECT_SECONDS);
	connect_to(to, from->qp_num, &gid, (uint8_t)atoi(argv[2]));
	connect_to(from, to->qp_num, &gid, (uint8_t)atoi(argv[2]));
	while (sent < messages || received < messages) {
		while (posted < messages && posted - sent < DEPTH / 2 &&
		       posted - received < DEPTH / 2) {
			receive(to, mr, posted % DEPTH);
			send_one(from, mr, posted % DEPTH, bytes);
			posted++;
		}
		poll_one(cq, &sent, &received);
	}
	printf("%llu messages\n", (unsigned long long)messages);
	ibv_destroy_qp(from);
	ibv_destroy_qp(to);
	return 0;
}
