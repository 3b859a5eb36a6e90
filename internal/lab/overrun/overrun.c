/* SPDX-License-Identifier: Apache-2.0 */

/* Lets a Completion Queue overrun: a QP that is connected to itself writes more
 * signaled requests than its CQ has room for, and nobody polls.
 *
 *     overrun DEVICE GID_INDEX
 *
 * Prints the asynchronous event that the device answers with and stays, so that
 * its queues can be looked at. */

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS 32
#define PORT 1

static void *check(void *result, const char *what)
{
	if (!result) {
		perror(what);
		exit(1);
	}
	return result;
}

static void check_errno(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(1);
	}
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = check(ibv_get_device_list(NULL), "ibv_get_device_list");

	for (int i = 0; devices[i]; i++)
		if (!strcmp(ibv_get_device_name(devices[i]), name))
			return check(ibv_open_device(devices[i]), "ibv_open_device");
	fprintf(stderr, "no device %s\n", name);
	exit(1);
}

static void connect_to_itself(struct ibv_qp *qp, int gid_index)
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
	check_errno(ibv_query_gid(qp->context, PORT, gid_index, &attr.ah_attr.grh.dgid), "ibv_"
											 "query_"
											 "gid");
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

int main(int argc, char **argv)
{
	static char buffer[64];

	if (argc != 3) {
		fprintf(stderr, "usage: overrun DEVICE GID_INDEX\n");
		return 2;
	}
	struct ibv_context *context = open_device(argv[1]);
	struct ibv_pd *pd = check(ibv_alloc_pd(context), "ibv_alloc_pd");
	struct ibv_mr *mr = check(ibv_reg_mr(pd, buffer, sizeof(buffer),
					     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
				  "ibv_reg_mr");
	struct ibv_cq *cq = check(ibv_create_cq(context, 1, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = REQUESTS,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = check(ibv_create_qp(pd, &init), "ibv_create_qp");

	connect_to_itself(qp, atoi(argv[2]));
	for (int i = 0; i < REQUESTS; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = 8, .lkey = mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)buffer + 8, .rkey = mr->rkey },
		};
		check_errno(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	}

	struct ibv_async_event event;
	check_errno(ibv_get_async_event(context, &event), "ibv_get_async_event");
	printf("event %s\n", ibv_event_type_str(event.event_type));
	fflush(stdout);
	ibv_ack_async_event(&event);
	pause();
	return 0;
}
