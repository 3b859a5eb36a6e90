/* SPDX-License-Identifier: Apache-2.0 */

/* Writes with a queue pair that is connected to itself, when it is told to. It is
 * built with rdma-core linked in: no library gives it away.
 *
 *     linked DEVICE GID_INDEX
 *
 * SIGUSR1: WRITES signaled writes of BYTES, with rising wr_ids, one after the other.
 * SIGUSR2: another queue pair in place of this one.
 * Says "ready" first, and after each signal what it did. */

#include <signal.h>

#include "../loopback.h"

#define WRITES 400
#define BYTES 512
#define DEPTH 16

static void poll(struct ibv_cq *cq)
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
	static char buffer[2 * BYTES];
	uint64_t next_id = 1;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	struct ibv_context *context = open_device(argv[1]);
	struct ibv_pd *pd = check(ibv_alloc_pd(context), "ibv_alloc_pd");
	int gid_index = atoi(argv[2]);
	struct ibv_mr *mr = check(ibv_reg_mr(pd, buffer, sizeof(buffer),
					     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
				  "ibv_reg_mr");
	struct ibv_cq *cq = check(ibv_create_cq(context, DEPTH, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_qp *qp = create_loopback(pd, cq, DEPTH, gid_index);

	printf("ready\n");
	for (;;) {
		int signal;

		fflush(stdout);
		sigwait(&signals, &signal);
		if (signal == SIGUSR1) {
			for (int i = 0; i < WRITES; i++) {
				post_write(qp, mr, next_id++, BYTES);
				poll(cq);
			}
			printf("wrote\n");
			continue;
		}
		check_errno(ibv_destroy_qp(qp), "ibv_destroy_qp");
		qp = create_loopback(pd, cq, DEPTH, gid_index);
		printf("replaced\n");
	}
}
