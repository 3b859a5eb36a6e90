/* SPDX-License-Identifier: Apache-2.0 */

/* Lets a Completion Queue overrun: a QP that is connected to itself writes more
 * signaled requests than its CQ has room for, and nobody polls.
 *
 *     overrun DEVICE GID_INDEX
 *
 * Prints the asynchronous event that the device answers with and stays, so that
 * its queues can be looked at. */

#include <unistd.h>

#include "../loopback.h"

#define REQUESTS 32
#define BYTES 8

int main(int argc, char **argv)
{
	static char buffer[2 * BYTES];

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
	struct ibv_qp *qp = create_loopback(pd, cq, REQUESTS, atoi(argv[2]));

	for (int i = 0; i < REQUESTS; i++)
		post_write(qp, mr, i, BYTES);

	struct ibv_async_event event;
	check_errno(ibv_get_async_event(context, &event), "ibv_get_async_event");
	printf("event %s\n", ibv_event_type_str(event.event_type));
	fflush(stdout);
	ibv_ack_async_event(&event);
	pause();
	return 0;
}
