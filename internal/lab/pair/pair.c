/* SPDX-License-Identifier: Apache-2.0 */

/* One end of a connection on which work requests go at a steady pace, until they are
 * to go wrong.
 *
 *     pair [options] DEVICE GID_INDEX [ADDRESS]
 *
 * Without ADDRESS it is the server. -k says what the client does every -i
 * microseconds: ping sends a message and waits for the answer, send sends a message,
 * write writes into the memory of the server. What goes wrong at SIGUSR1, and goes
 * right at the next one, is said by the other options. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../program.h"

#define TCP_PORT 18600
#define PORT 1
#define DEPTH 64
#define MOST_BYTES (1 << 20)

enum kind { KIND_PING, KIND_SEND, KIND_WRITE };

struct options {
	const char *device, *address;
	int gid_index;
	enum kind kind;
	uint32_t bytes;
	/* Between two rounds of the client. */
	long interval_us;
	int ack_timeout, min_rnr_timer;
	/* Polls all the time rather than to sleep until a completion is told of. */
	bool spins;
	/* What goes wrong: the server rests for so long before it posts its next
	 * receive, or before it answers; the client registers and deregisters so much
	 * memory, for so long, before it polls. */
	long receive_late_ms, answer_late_ms, registers_ms;
	size_t registers;
};

/* What the ends tell each other. */
struct end {
	uint32_t qpn, rkey;
	uint64_t address;
	union ibv_gid gid;
};

struct side {
	struct options options;
	int peer;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct end remote;
	/* What is registered when it goes wrong. */
	char *memory;
	/* Completions that were taken and not yet waited for. */
	int sent, received;
};

static volatile sig_atomic_t wrong;

static void toggle(int signal)
{
	(void)signal;
	wrong = !wrong;
}

static void check_zero(int result, const char *what)
{
	if (result) {
		perror(what);
		exit(1);
	}
}

static void rest(long us)
{
	struct timespec left = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static int accept_peer(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(TCP_PORT) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check_zero(bind(listener, (struct sockaddr *)&own, sizeof(own)), "bind");
	check_zero(listen(listener, 1), "listen");
	printf("listens\n");
	fflush(stdout);
	int peer = accept(listener, NULL, NULL);
	check_zero(peer < 0, "accept");
	close(listener);
	return peer;
}

static int connect_peer(const char *address)
{
	struct sockaddr_in of = { .sin_family = AF_INET, .sin_port = htons(TCP_PORT) };
	int peer = socket(AF_INET, SOCK_STREAM, 0);

	if (inet_pton(AF_INET, address, &of.sin_addr) != 1) {
		fprintf(stderr, "no address: %s\n", address);
		exit(2);
	}
	check_zero(connect(peer, (struct sockaddr *)&of, sizeof(of)), "connect");
	return peer;
}

static void open_queues(struct side *s)
{
	s->context = open_device(s->options.device);
	s->pd = check(ibv_alloc_pd(s->context), "ibv_alloc_pd");
	s->channel = check(ibv_create_comp_channel(s->context), "ibv_create_comp_channel");
	s->cq = check(ibv_create_cq(s->context, 2 * DEPTH, NULL, s->channel, 0), "ibv_create_cq");
	char *buffer =
		mmap(NULL, MOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_zero(buffer == MAP_FAILED, "mmap");
	s->mr = check(ibv_reg_mr(s->pd, buffer, MOST_BYTES,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		      "ibv_reg_mr");
	if (s->options.registers)
		s->memory = mmap(NULL, s->options.registers, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	check_zero(s->memory == MAP_FAILED, "mmap");
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	s->qp = check(ibv_create_qp(s->pd, &init), "ibv_create_qp");
}

static void exchange(struct side *s)
{
	struct end own = {
		.qpn = s->qp->qp_num,
		.rkey = s->mr->rkey,
		.address = (uintptr_t)s->mr->addr,
	};

	check_errno(ibv_query_gid(s->context, PORT, s->options.gid_index, &own.gid), "ibv_query_"
										     "gid");
	check_zero(write(s->peer, &own, sizeof(own)) != sizeof(own), "tell the peer");
	check_zero(recv(s->peer, &s->remote, sizeof(s->remote), MSG_WAITALL) != sizeof(s->remote),
		   "hear of the peer");
}

static void connect_queues(struct side *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	check_errno(ibv_modify_qp(s->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS),
		    "INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = s->remote.qpn;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = s->options.min_rnr_timer;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = PORT;
	attr.ah_attr.grh.sgid_index = s->options.gid_index;
	attr.ah_attr.grh.hop_limit = 1;
	attr.ah_attr.grh.dgid = s->remote.gid;
	check_errno(ibv_modify_qp(s->qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER),
		    "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = s->options.ack_timeout;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	check_errno(ibv_modify_qp(s->qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC),
		    "RTS");
}

static void post_receive(struct side *s)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->mr->addr,
			       .length = s->options.bytes,
			       .lkey = s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	check_errno(ibv_post_recv(s->qp, &wr, &bad), "ibv_post_recv");
}

static void post_send(struct side *s)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->mr->addr,
			       .length = s->options.bytes,
			       .lkey = s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = s->options.kind == KIND_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = s->remote.address, .rkey = s->remote.rkey },
	};

	check_errno(ibv_post_send(s->qp, &wr, &bad), "ibv_post_send");
}

/* Sleeps until a completion is told of, or the peer is gone: then it ends. */
static void await_event(struct side *s)
{
	struct pollfd fds[] = { { .fd = s->channel->fd, .events = POLLIN },
				{ .fd = s->peer, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;

	if (poll(fds, 2, -1) < 0)
		return; /* a signal */
	if (fds[1].revents)
		exit(0);
	check_zero(ibv_get_cq_event(s->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* Takes completions, and reports whether there were any. */
static bool take(struct side *s)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(s->cq, DEPTH, wc);

	check_zero(n < 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status) {
			fprintf(stderr, "completion %d of opcode %d: %s\n", i, wc[i].opcode,
				ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (wc[i].opcode & IBV_WC_RECV)
			s->received++;
		else
			s->sent++;
	}
	return n > 0;
}

/* Returns when one more of that count has been taken. */
static void await(struct side *s, int *count)
{
	while (!*count) {
		if (take(s) || s->options.spins)
			continue;
		check_errno(ibv_req_notify_cq(s->cq, 0), "ibv_req_notify_cq");
		if (!take(s))
			await_event(s);
	}
	(*count)--;
}

static void register_once(struct side *s)
{
	struct ibv_mr *mr =
		check(ibv_reg_mr(s->pd, s->memory, s->options.registers, IBV_ACCESS_LOCAL_WRITE),
		      "ibv_reg_mr");
	check_errno(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* What some libraries do for each message: its memory is registered for it alone. */
static void register_memory(struct side *s)
{
	long long end = now_ms() + s->options.registers_ms;

	do
		register_once(s);
	while (now_ms() < end);
}

static _Noreturn void serve(struct side *s)
{
	for (;;) {
		await(s, &s->received);
		if (wrong)
			rest(s->options.receive_late_ms * 1000);
		post_receive(s);
		if (s->options.kind != KIND_PING)
			continue;
		if (wrong)
			rest(s->options.answer_late_ms * 1000);
		post_send(s);
		await(s, &s->sent);
	}
}

static _Noreturn void drive(struct side *s)
{
	for (;;) {
		if (s->options.kind == KIND_PING)
			post_receive(s);
		post_send(s);
		if (wrong && s->options.registers)
			register_memory(s);
		await(s, &s->sent);
		if (s->options.kind == KIND_PING)
			await(s, &s->received);
		rest(s->options.interval_us);
	}
}

static enum kind kind_of(const char *name)
{
	static const char *const names[] = { "ping", "send", "write" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(names[i], name))
			return i;
	fprintf(stderr, "no kind: %s\n", name);
	exit(2);
}

static struct options parse(int argc, char **argv)
{
	struct options o = {
		.interval_us = 10000, .bytes = 64, .ack_timeout = 18, .min_rnr_timer = 12
	};
	int option;

	while ((option = getopt(argc, argv, "k:b:i:t:m:pl:a:r:n:")) != -1) {
		switch (option) {
		case 'k':
			o.kind = kind_of(optarg);
			break;
		case 'b':
			o.bytes = strtoul(optarg, NULL, 10);
			break;
		case 'i':
			o.interval_us = strtol(optarg, NULL, 10);
			break;
		case 't':
			o.ack_timeout = atoi(optarg);
			break;
		case 'm':
			o.min_rnr_timer = atoi(optarg);
			break;
		case 'p':
			o.spins = true;
			break;
		case 'l':
			o.receive_late_ms = strtol(optarg, NULL, 10);
			break;
		case 'a':
			o.answer_late_ms = strtol(optarg, NULL, 10);
			break;
		case 'r':
			o.registers = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			o.registers_ms = strtol(optarg, NULL, 10);
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind < 2 || o.bytes > MOST_BYTES) {
		fprintf(stderr, "usage: pair [options] DEVICE GID_INDEX [ADDRESS]\n");
		exit(2);
	}
	o.device = argv[optind];
	o.gid_index = atoi(argv[optind + 1]);
	o.address = argv[optind + 2];
	return o;
}

int main(int argc, char **argv)
{
	struct side side = { .options = parse(argc, argv) }, *s = &side;
	struct sigaction action = { .sa_handler = toggle, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	open_queues(s);
	s->peer = s->options.address ? connect_peer(s->options.address) : accept_peer();
	exchange(s);
	connect_queues(s);
	if (!s->options.address)
		post_receive(s);
	/* Each is ready before the other sends. */
	exchange(s);
	printf("runs\n");
	fflush(stdout);
	if (s->options.address)
		drive(s);
	serve(s);
}
