/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Queue pairs that are connected to themselves, by the first port of a device. */

#include "program.h"

#define PORT 1

static inline void connect_to_itself(struct ibv_qp *qp, int gid_index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	check_errno(ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS),
		    "INIT");

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = PORT;
	attr.ah_attr.grh.sgid_index = gid_index;
	attr.ah_attr.grh.hop_limit = 1;
	union ibv_gid *gid = &attr.ah_attr.grh.dgid;
	check_errno(ibv_query_gid(qp->context, PORT, gid_index, gid), "ibv_query_gid");
	check_errno(ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER),
		    "RTR");

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	check_errno(ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC),
		    "RTS");
}

/* A queue pair that completes to a CQ, with room for so many requests. */
static inline struct ibv_qp *create_loopback(struct ibv_pd *pd, struct ibv_cq *cq,
					     uint32_t requests, int gid_index)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = requests,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = check(ibv_create_qp(pd, &init), "ibv_create_qp");

	connect_to_itself(qp, gid_index);
	return qp;
}

/* Posts a signaled write of the first half of a region to the second one. */
static inline void post_write(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t wr_id, uint32_t bytes)
{
	uint64_t from = (uintptr_t)mr->addr;
	struct ibv_sge sge = { .addr = from, .length = bytes, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = from + bytes, .rkey = mr->rkey },
	};

	check_errno(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}
