/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that is measured: one thread on one processor that polls with a set
 * number of empty polls for every completion, and that posts one request with
 * one scatter entry at a time, through ibv_poll_cq and ibv_post_send as any
 * program does.
 *
 * The empty polls go to a Completion Queue of the same device that stays
 * empty, the others to one that was filled beforehand: so a completion is ready
 * exactly when the loop comes to it, and neither posting nor the simulated
 * device is in the time.
 */
#define _GNU_SOURCE /* for processor sets */

#include "verbsim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 128
#define MAX_SAMPLES (1u << 16)
#define MAX_RATIOS 16
/* A stretch that is timed has about so many polls, so that the clock costs nothing. */
#define POLLS_TIMED 2000u
#define REMOTE_QPN 0x00beefu

struct loop {
	const struct verbsim_api *api;
	struct ibv_device *device;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *full, *empty;
	struct ibv_qp *qp;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint64_t next, expected; /* wr_ids: of the next post, of the next completion */
	uint64_t polls, completions, clock_ns, cell_ns;
	double samples[MAX_SAMPLES];
	uint32_t nsamples;
	char buffer[4096];
};

static _Noreturn void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "loop: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void open_provider(struct loop *l, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);
	verbsim_api_fn api;

	if (!handle)
		die("loading the provider: %s", dlerror());
	api = (verbsim_api_fn)dlsym(handle, "verbsim_api");
	if (!api)
		die("loading the provider: %s has no function verbsim_api", path);
	l->api = api();
}

static void open_device(struct loop *l)
{
	struct verbsim_config config = { .name = "bench0", .first_qpn = 0xb0b000 };
	char err[512] = "";

	l->device = l->api->device_new(&config, err, sizeof(err));
	if (!l->device)
		die("making the device: %s", err);
	l->ctx = ibv_open_device(l->device);
	if (!l->ctx)
		die("ibv_open_device: %s", strerror(errno));
	l->pd = ibv_alloc_pd(l->ctx);
	l->full = ibv_create_cq(l->ctx, DEPTH, NULL, NULL, 0);
	l->empty = ibv_create_cq(l->ctx, DEPTH, NULL, NULL, 0);
	if (!l->pd || !l->full || !l->empty)
		die("ibv_create_cq: %s", strerror(errno));
	l->mr = ibv_reg_mr(l->pd, l->buffer, sizeof(l->buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!l->mr)
		die("ibv_reg_mr: %s", strerror(errno));
}

static void modify(struct loop *l, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(l->qp, attr, mask | IBV_QP_STATE);

	if (err)
		die("ibv_modify_qp to state %d: %s", attr->qp_state, strerror(err));
}

static void open_queue(struct loop *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->full,
		.recv_cq = l->full,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.dest_qp_num = REMOTE_QPN,
		.path_mtu = IBV_MTU_4096,
		.ah_attr = { .dlid = 2, .port_num = 1 },
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
	};

	l->qp = ibv_create_qp(l->pd, &init);
	if (!l->qp)
		die("ibv_create_qp: %s", strerror(errno));
	modify(l, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	modify(l, &attr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	modify(l, &attr,
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);

	l->sge = (struct ibv_sge){ (uintptr_t)l->buffer, 64, l->mr->lkey };
	l->wr = (struct ibv_send_wr){
		.sg_list = &l->sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = 0x10000000, .rkey = 0x1234 },
	};
}

static inline void post_one(struct loop *l)
{
	struct ibv_send_wr *bad;

	l->wr.wr_id = l->next++;
	if (__builtin_expect(ibv_post_send(l->qp, &l->wr, &bad), 0))
		die("ibv_post_send was refused");
}

/* Asks for one completion and gets it. */
static inline void poll_full(struct loop *l)
{
	struct ibv_wc wc;
	int got = ibv_poll_cq(l->full, 1, &wc);

	if (__builtin_expect(got != 1 || wc.status || wc.wr_id != l->expected++, 0))
		die("ibv_poll_cq returned %d where the next completion was ready", got);
}

static inline void poll_empty(struct loop *l)
{
	struct ibv_wc wc;
	int got = ibv_poll_cq(l->empty, 1, &wc);

	if (__builtin_expect(got, 0))
		die("ibv_poll_cq returned %d for a queue that nothing completes on", got);
}

/* One more poll, so that the device hands over what is due. */
static void let_complete(struct loop *l)
{
	poll_empty(l);
	l->polls++;
}

static void sample(struct loop *l, uint64_t ns, uint64_t calls)
{
	double each = (double)(ns > l->clock_ns ? ns - l->clock_ns : 0) / (double)calls;

	if (l->nsamples < MAX_SAMPLES)
		l->samples[l->nsamples++] = each;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median stretch: an interrupt or another program in between is in few of them. */
static double median(struct loop *l)
{
	if (!l->nsamples)
		die("nothing was timed");
	qsort(l->samples, l->nsamples, sizeof(l->samples[0]), by_value);
	return l->samples[l->nsamples / 2];
}

static void time_polls(struct loop *l, uint32_t empty, uint32_t completions)
{
	uint64_t begin = now_ns();

	for (uint32_t i = 0; i < completions; i++) {
		for (uint32_t e = 0; e < empty; e++)
			poll_empty(l);
		poll_full(l);
	}
	sample(l, now_ns() - begin, (uint64_t)completions * (empty + 1));
	l->polls += (uint64_t)completions * (empty + 1);
	l->completions += completions;
}

static double poll_cell(struct loop *l, uint32_t empty)
{
	uint64_t end = now_ns() + l->cell_ns;
	uint32_t stretch = POLLS_TIMED / (empty + 1);

	if (stretch < 1)
		stretch = 1;
	l->nsamples = 0;
	while (!l->nsamples || now_ns() < end) {
		for (uint32_t i = 0; i < DEPTH; i++)
			post_one(l);
		let_complete(l);
		for (uint32_t left = DEPTH; left;) {
			uint32_t n = left < stretch ? left : stretch;

			time_polls(l, empty, n);
			left -= n;
		}
	}
	return median(l);
}

static double post_cell(struct loop *l)
{
	uint64_t end = now_ns() + l->cell_ns;

	l->nsamples = 0;
	while (!l->nsamples || now_ns() < end) {
		uint64_t begin = now_ns();

		for (uint32_t i = 0; i < DEPTH; i++)
			post_one(l);
		sample(l, now_ns() - begin, DEPTH);
		let_complete(l);
		for (uint32_t i = 0; i < DEPTH; i++)
			poll_full(l);
		l->polls += DEPTH;
		l->completions += DEPTH;
	}
	return median(l);
}

/* What reading the clock twice adds to a stretch. */
static void calibrate(struct loop *l)
{
	l->nsamples = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t begin = now_ns();

		sample(l, now_ns() - begin, 1);
	}
	l->clock_ns = (uint64_t)median(l);
}

/*
 * With automatic groups (sched(7)) the nice value counts within the session only,
 * and that of the session against all others.
 */
static void prefer(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "-15", 3) != 3)
			fprintf(stderr, "loop: /proc/self/autogroup: %s\n", strerror(errno));
		close(fd);
	}
	if (setpriority(PRIO_PROCESS, 0, -15))
		fprintf(stderr, "loop: running at ordinary priority: %s\n", strerror(errno));
}

/* A processor of its own, ahead of what else wants it, as a pinned progress thread has. */
static void settle_down(long cpu)
{
	cpu_set_t set;

	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			die("staying on processor %ld: %s", cpu, strerror(errno));
	}
	prefer();
}

static uint32_t parse_ratios(char *list, uint32_t *ratios)
{
	uint32_t n = 0;

	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		char *end;
		unsigned long value = strtoul(word, &end, 10);

		if (*end || value > 1000000 || n == MAX_RATIOS)
			die("--empty %s: up to %d numbers up to 1000000", word, MAX_RATIOS);
		ratios[n++] = (uint32_t)value;
	}
	return n;
}

/* Has the library in use until the other end of the standard input is closed. */
static void hold(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void measure(struct loop *l, const uint32_t *ratios, uint32_t n)
{
	double ns[MAX_RATIOS], post;

	calibrate(l);
	for (uint32_t i = 0; i < n; i++)
		ns[i] = poll_cell(l, ratios[i]);
	post = post_cell(l);
	printf("{\"poll_ns\":{");
	for (uint32_t i = 0; i < n; i++)
		printf("%s\"%u\":%.3f", i ? "," : "", ratios[i], ns[i]);
	printf("},\"post_ns\":%.3f,\"polls\":%llu,\"completions\":%llu,\"posts\":%llu}\n", post,
	       (unsigned long long)l->polls, (unsigned long long)l->completions,
	       (unsigned long long)l->next);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "provider", required_argument, NULL, 'p' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "cell-ms", required_argument, NULL, 'm' },
		{ "empty", required_argument, NULL, 'e' },
		{ "hold", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct loop *l = calloc(1, sizeof(*l));
	const char *provider = NULL;
	uint32_t ratios[MAX_RATIOS], n = 0;
	long cpu = -1;
	int c, holds = 0;

	if (!l)
		die("out of memory");
	l->cell_ns = 100000000;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			provider = optarg;
			break;
		case 'c':
			cpu = atol(optarg);
			break;
		case 'm':
			l->cell_ns = strtoull(optarg, NULL, 10) * 1000000;
			break;
		case 'e':
			n = parse_ratios(optarg, ratios);
			break;
		case 'h':
			holds = 1;
			break;
		default:
			return 2;
		}
	}
	if (!provider || (!holds && !n))
		die("usage: loop --provider FILE (--hold | --empty N,...) [--cpu N] [--cell-ms N]");
	open_provider(l, provider);
	if (holds) {
		hold();
		return 0;
	}
	settle_down(cpu);
	open_device(l);
	open_queue(l);
	measure(l, ratios, n);
	return 0;
}
