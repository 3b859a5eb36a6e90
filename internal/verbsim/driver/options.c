/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, REAL, U64, U32, FLAG, OPCODE };

struct flag {
	const char *name;
	enum kind kind;
	size_t where;
	double min, max;
	const char *what;
};

/* As long as a program takes to find its peers, at the least. */
#define CONNECT_MS 100

#define AT(field) offsetof(struct options, field)

static const struct flag flags[] = {
	{ "seconds", REAL, AT(seconds), 0, 1e6, "end after this time, 0: no limit" },
	{ "requests", U64, AT(requests), 0, 1e15,
	  "end after so many send work requests, 0: no limit" },
	{ "device", TEXT, AT(device), 0, 0, "name of the device (two-devices: of the first)" },
	{ "provider", TEXT, AT(provider), 0, 0, "file of the provider" },
	{ "depth", U32, AT(depth), 1, 32768, "work requests a Send Queue holds" },
	{ "size", U64, AT(size), 0, 1 << 30, "bytes of a work request" },
	{ "qps", U32, AT(qps), 1, 16384, "queue pairs that send" },
	{ "chain", U32, AT(chain), 1, 32768, "work requests of a post" },
	{ "threads", U32, AT(threads), 1, 64, "threads that post (threads)" },
	{ "wr-ids", U64, AT(wr_ids), 0, 1e15, "rising wr_ids go round after so many, 0: never" },
	{ "overtake-us", REAL, AT(overtake_us), 0, 1e5,
	  "time in which a post may be overtaken on its way (threads)" },
	{ "evict-post", U64, AT(evict_post), 0, 1e15,
	  "this post of each queue has its list out of memory" },
	{ "evict-apart", FLAG, AT(evict_apart), 0, 0,
	  "with evict-post, that post is the only one of a thread" },
	{ "refuse-every", U32, AT(refuse_every), 0, 1e9,
	  "before every so many posts of a queue, calls of ibv_modify_qp that are refused" },
	{ "gather", U32, AT(gather), 0, MAX_POLL, "once, one poll that finds so many completions" },
	{ "gather-after", U64, AT(gather_after), 0, 1e15, "requests that are posted before it" },
	{ "ext-post", FLAG, AT(ext_post), 0, 0, "post through ibv_qp_ex" },
	{ "ext-poll", FLAG, AT(ext_poll), 0, 0, "poll through ibv_cq_ex" },
	{ "ext-lie", FLAG, AT(ext_lie), 0, 0,
	  "with ext-post, confuse who looks at the functions of a queue" },
	{ "no-qp-num", FLAG, AT(no_qp_num), 0, 0,
	  "with ext-poll and one queue, completions that do not tell it" },
	{ "abort-every", U32, AT(abort_every), 0, 1e9,
	  "with ext-post, the chain that is first built and aborted" },
	{ "op", OPCODE, AT(op), 0, 0, "write, write-imm, send, send-imm, read, swap or add" },
	{ "latency-us", REAL, AT(latency_us), 0, 1e9, "time from the wire to the completion" },
	{ "rate-gbps", REAL, AT(rate_gbps), 0, 1e5, "rate of the port, 0: infinite" },
	{ "rate", REAL, AT(rate), 0, 1e9, "posts a second, 0: as fast as it goes" },
	{ "spike-us", REAL, AT(spike_us), 0, 1e9, "extra time of a spike" },
	{ "spikes-per-second", REAL, AT(spikes_per_second), 0, 1e4, "spikes on the first QP" },
	{ "slow-share", REAL, AT(slow_share), 0, 0.5,
	  "share of posts that are --spike-us late, on one more QP" },
	{ "late-us", REAL, AT(late_us), 0, 1e9, "how late the late poller is" },
	{ "nap-us", REAL, AT(nap_us), 0, 1e9, "sleep between polls, after --warmup-quiet-ms" },
	{ "connect-ms", U32, AT(connect_ms), 0, 1e6,
	  "time between opening the first device and making queues" },
	{ "warmup-quiet-ms", U32, AT(warmup_quiet_ms), 0, 1e9, "nothing is slow in this time" },
	{ "start-delay-ms", U32, AT(start_delay_ms), 0, 1e9, "wait before the first post" },
	{ "wait-file", TEXT, AT(wait_file), 0, 0, "wait for this file before the first post" },
	{ "ready-file", TEXT, AT(ready_file), 0, 0, "make this file when the queues are set up" },
	{ "midstream", FLAG, AT(midstream), 0, 0, "make the ready file when posts are under way" },
	{ "pause-after", U64, AT(pause_after), 0, 1e15,
	  "drain and pause after every so many requests" },
	{ "pause-at-ms", U32, AT(pause_at_ms), 0, 1e9,
	  "drain and pause once, so long after the start" },
	{ "pause-ms", U32, AT(pause_ms), 0, 1e9, "length of the pause" },
	{ "truth", TEXT, AT(truth), 0, 0, "write what happened to this file (JSON)" },
	{ "truth-records", TEXT, AT(truth_records), 0, 0, "write every completion to this file" },
	{ "truth-slow-us", REAL, AT(truth_slow_us), 0, 1e9, "what the truth lists as slow" },
	{ "max-records", U64, AT(max_records), 1, 1e9, "completions that truth-records may hold" },
	{ "sysroot", TEXT, AT(sysroot), 0, 0, "write sys/class/infiniband of the devices here" },
	{ "broken-exec", FLAG, AT(broken_exec), 0, 0,
	  "a second thread does it, then executes a program that breaks: ends by SIGSEGV" },
	{ "after-exec", FLAG, AT(after_exec), 0, 0, "internal: second half of fork-exec" },
};

#define NFLAGS (sizeof(flags) / sizeof(flags[0]))

static const struct {
	const char *name;
	enum ibv_wr_opcode op;
} ops[] = {
	{ "write", IBV_WR_RDMA_WRITE },
	{ "write-imm", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "send", IBV_WR_SEND },
	{ "send-imm", IBV_WR_SEND_WITH_IMM },
	{ "read", IBV_WR_RDMA_READ },
	{ "swap", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "add", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

static void usage(FILE *to)
{
	fprintf(to, "usage: verbsim SCENARIO [--flag VALUE]...\n\nscenarios:\n");
	if (to == stdout)
		scenario_list();
	else
		fprintf(to, "  verbsim --help lists them\n");
	fprintf(to, "\nflags:\n");
	for (size_t i = 0; i < NFLAGS; i++)
		fprintf(to, "  --%-18s %s\n", flags[i].name, flags[i].what);
}

static _Noreturn void refuse(const char *flag, const char *value, const char *why)
{
	fprintf(stderr, "verbsim: --%s %s: %s\n", flag, value, why);
	exit(2);
}

static double number(const struct flag *f, const char *value)
{
	char *end;
	double x;

	errno = 0;
	x = strtod(value, &end);
	if (errno || *end || end == value || isnan(x))
		refuse(f->name, value, "not a number");
	if (x < f->min || x > f->max)
		refuse(f->name, value, "out of range");
	if (f->kind != REAL && x != floor(x))
		refuse(f->name, value, "not a whole number");
	return x;
}

static enum ibv_wr_opcode opcode(const struct flag *f, const char *value)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(ops[i].name, value))
			return ops[i].op;
	refuse(f->name, value, f->what);
}

static void set(struct options *o, const struct flag *f, const char *value)
{
	void *field = (char *)o + f->where;

	switch (f->kind) {
	case TEXT:
		*(const char **)field = value;
		return;
	case REAL:
		*(double *)field = number(f, value);
		return;
	case U64:
		*(uint64_t *)field = (uint64_t)number(f, value);
		return;
	case U32:
		*(uint32_t *)field = (uint32_t)number(f, value);
		return;
	case FLAG:
		*(bool *)field = true;
		return;
	case OPCODE:
		*(enum ibv_wr_opcode *)field = opcode(f, value);
		return;
	}
}

static void fill_long(struct option *longs)
{
	for (size_t i = 0; i < NFLAGS; i++) {
		longs[i].name = flags[i].name;
		longs[i].has_arg = flags[i].kind == FLAG ? no_argument : required_argument;
	}
}

/* What no scenario sets for itself. */
static void fill_common(struct options *o)
{
	if (!o->device)
		o->device = "sim0";
	if (!o->provider)
		o->provider = "libverbsim-rdmav34.so"; /* found beside this program, by its RUNPATH
							*/
	if (!o->seconds)
		o->seconds = 5;
	if (!o->truth_slow_us)
		o->truth_slow_us = 50;
	if (!o->max_records)
		o->max_records = 16u << 20;
	if (!o->latency_us)
		o->latency_us = 1.9;
	if (!o->rate_gbps)
		o->rate_gbps = 100;
	if (!o->depth)
		o->depth = 128;
	if (!o->qps)
		o->qps = 1;
	if (!o->chain)
		o->chain = 1;
	if (!o->threads)
		o->threads = 1;
	if (!o->late_us)
		o->late_us = 500;
}

/* As the kernel names devices; the name becomes a folder and a JSON string. */
static void check_name(const char *name)
{
	const char *fine = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (!*name || strlen(name) > 24 || name[strspn(name, fine)])
		refuse("device", name, "a name has up to 24 letters, digits, _ and -");
}

const struct scenario *options_parse(struct options *o, int argc, char **argv)
{
	struct option longs[NFLAGS + 1] = { 0 };
	const struct scenario *s;
	bool seconds = false, requests = false;
	int index = 0, c;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		exit(0);
	}
	s = argc > 1 ? scenario_find(argv[1]) : NULL;
	if (!s) {
		fprintf(stderr, "verbsim: %s: no such scenario\n", argc > 1 ? argv[1] : "(none)");
		usage(stderr);
		exit(2);
	}
	*o = s->defaults;
	o->connect_ms = CONNECT_MS;
	o->scenario = s->name;
	fill_common(o);
	fill_long(longs);
	while ((c = getopt_long(argc - 1, argv + 1, "", longs, &index)) == 0) {
		set(o, &flags[index], optarg);
		seconds |= flags[index].where == AT(seconds);
		requests |= flags[index].where == AT(requests);
	}
	if (c != -1 || optind != argc - 1) {
		fprintf(stderr, "verbsim: verbsim --help lists the flags\n");
		exit(2);
	}
	check_name(o->device);
	/* A number of requests alone takes the time that it takes. */
	if (requests && !seconds)
		o->seconds = 0;
	return s;
}
