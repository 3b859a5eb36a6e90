/* SPDX-License-Identifier: Apache-2.0 */

/* Makes a queue pair go fatal: one that is connected to another one of this process
 * by the connection manager, as iWARP needs it, sends messages that all arrive, and
 * then one from memory with a key that is none.
 *
 *     qpfatal ADDRESS MESSAGES
 *
 * Prints the asynchronous event that the device answers with and stays, so that its
 * queues can be looked at. */

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include "../program.h"

#define PORT 7471
#define TIMEOUT_MS 10000
#define BYTES 64

/* Functions of the connection manager set errno, those of verbs return it. */
static void check_cm(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

/* Waits for the next event, which has to be this one, and returns what it is about. */
static struct rdma_cm_id *await(struct rdma_event_channel *channel, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event;

	check_cm(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	struct rdma_cm_id *id = event->id;

	if (event->event != want) {
		fprintf(stderr, "%s (%d) in place of %s\n", rdma_event_str(event->event),
			event->status, rdma_event_str(want));
		exit(1);
	}
	check_cm(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return id;
}

static struct ibv_cq *create_cq(struct rdma_cm_id *id)
{
	return check(ibv_create_cq(id->verbs, 16, NULL, NULL, 0), "ibv_create_cq");
}

/* A queue pair with CQs of its own, that of sends before that of receives. */
static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_cq *send_cq = create_cq(id), *recv_cq = create_cq(id);
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	check_cm(rdma_create_qp(id, NULL, &init), "rdma_create_qp");
}

/* Connects a client with a server of this process. */
static void connect_both(const char *address, struct rdma_cm_id **client,
			 struct rdma_cm_id **server)
{
	struct rdma_event_channel *channel = check(rdma_create_event_channel(), "event channel");
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_conn_param parameters = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *listener;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1) {
		fprintf(stderr, "no IPv4 address: %s\n", address);
		exit(2);
	}
	check_cm(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check_cm(rdma_bind_addr(listener, (struct sockaddr *)&to), "rdma_bind_addr");
	check_cm(rdma_listen(listener, 1), "rdma_listen");

	check_cm(rdma_create_id(channel, client, NULL, RDMA_PS_TCP), "rdma_create_id");
	check_cm(rdma_resolve_addr(*client, NULL, (struct sockaddr *)&to, TIMEOUT_MS), "rdma_"
										       "resolve_"
										       "addr");
	await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	check_cm(rdma_resolve_route(*client, TIMEOUT_MS), "rdma_resolve_route");
	await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_qp(*client);
	check_cm(rdma_connect(*client, &parameters), "rdma_connect");

	*server = await(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	create_qp(*server);
	check_cm(rdma_accept(*server, &parameters), "rdma_accept");
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
}

static struct ibv_wc next_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		usleep(100);
	if (n < 0) {
		fprintf(stderr, "ibv_poll_cq: %d\n", n);
		exit(1);
	}
	return wc;
}

static void expect_success(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc = next_completion(cq);

	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void post_send(struct ibv_qp *qp, void *from, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from, .length = BYTES, .lkey = lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	check_errno(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void post_receive(struct ibv_qp *qp, void *to, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)to, .length = BYTES, .lkey = lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	check_errno(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

int main(int argc, char **argv)
{
	static char from[BYTES], to[BYTES];
	struct rdma_cm_id *client, *server;

	if (argc != 3) {
		fprintf(stderr, "usage: qpfatal ADDRESS MESSAGES\n");
		return 2;
	}
	connect_both(argv[1], &client, &server);
	struct ibv_mr *source = check(ibv_reg_mr(client->pd, from, BYTES, 0), "ibv_reg_mr");
	struct ibv_mr *target =
		check(ibv_reg_mr(server->pd, to, BYTES, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");

	for (int i = 0; i < atoi(argv[2]); i++) {
		post_receive(server->qp, to, target->lkey, i);
		post_send(client->qp, from, source->lkey, i);
		expect_success(client->qp->send_cq, "send");
		expect_success(server->qp->recv_cq, "receive");
	}

	post_send(client->qp, from, ~source->lkey, atoi(argv[2]));
	struct ibv_wc wc = next_completion(client->qp->send_cq);
	printf("the last send: %s\n", ibv_wc_status_str(wc.status));

	struct ibv_async_event event;
	check_errno(ibv_get_async_event(client->verbs, &event), "ibv_get_async_event");
	printf("event %s of queue pair %u\n", ibv_event_type_str(event.event_type),
	       event.element.qp->qp_num);
	fflush(stdout);
	ibv_ack_async_event(&event);
	pause();
	return 0;
}
