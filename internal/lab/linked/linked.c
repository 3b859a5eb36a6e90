/* SPDX-License-Identifier: Apache-2.0 */

/* Writes with a queue pair that is connected to itself, when it is told to. It is
 * built with rdma-core linked in: no library gives it away.
 *
 *     linked DEVICE GID_INDEX
 *
 * SIGUSR1: WRITES signaled writes of BYTES, with rising wr_ids, one after the other.
 * SIGUSR2: another queue pair in place of this one.
 * Says "ready" first, and after each signal what it did. */

#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITES 400
#define BYTES 512
#define DEPTH 16
#define PORT 1

static char buffer[2 * BYTES];
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static uint64_t next_id = 1;

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

static struct ibv_qp *new_qp(struct ibv_pd *pd, int gid_index)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = check(ibv_create_qp(pd, &init), "ibv_create_qp");

	connect_to_itself(qp, gid_index);
	return qp;
}

static void post(struct ibv_qp *qp)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = BYTES, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = next_id++,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)buffer + BYTES, .rkey = mr->rkey },
	};

	check_errno(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void poll(void)
{
	struct ibv_wc wc;
	int n = 0;

	while (n == 0)
		n = ibv_poll_cq(cq, 1, &wc);
	if (n < 0 || wc.status) {
		fprintf(stderr, "ibv_poll_cq: %d, %s\n", n, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: linked DEVICE GID_INDEX\n");
		return 2;
	}
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	struct ibv_context *context = open_device(argv[1]);
	struct ibv_pd *pd = check(ibv_alloc_pd(context), "ibv_alloc_pd");
	int gid_index = atoi(argv[2]);

	mr = check(ibv_reg_mr(pd, buffer, sizeof(buffer),
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		   "ibv_reg_mr");
	cq = check(ibv_create_cq(context, DEPTH, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_qp *qp = new_qp(pd, gid_index);

	printf("ready\n");
	for (;;) {
		int signal;

		fflush(stdout);
		sigwait(&signals, &signal);
		if (signal == SIGUSR1) {
			for (int i = 0; i < WRITES; i++) {
				post(qp);
				poll();
			}
			printf("wrote\n");
			continue;
		}
		check_errno(ibv_destroy_qp(qp), "ibv_destroy_qp");
		qp = new_qp(pd, gid_index);
		printf("replaced\n");
	}
}
