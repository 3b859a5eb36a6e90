/* SPDX-License-Identifier: Apache-2.0 */
/* The table of scenarios. What a scenario does not set, options.c does. */
#include "scenarios.h"

#include <stdio.h>
#include <string.h>

#define W IBV_WR_RDMA_WRITE
#define S IBV_WR_SEND

static const struct scenario scenarios[] = {
	{ .name = "nccl",
	  .what = "chains with the last signaled, wr_ids that repeat and collide, one CQ, spikes",
	  .run = run_nccl,
	  .defaults = { .qps = 4, .chain = 4, .size = 8192, .depth = 256, .rate = 4000,
			.spike_us = 450, .spikes_per_second = 3, .op = W } },
	{ .name = "nccl-saturated",
	  .what = "16 QPs share a port at its rate: long, and not slow",
	  .run = run_stream,
	  .defaults = { .qps = 16, .chain = 2, .size = 1 << 20, .depth = 16, .op = W } },
	{ .name = "perftest",
	  .what = "one wr_id for all, 99 of 100 unsignaled",
	  .run = run_constant,
	  .defaults = { .size = 65536, .depth = 128, .op = W } },
	{ .name = "perftest-lat",
	  .what = "one request outstanding",
	  .run = run_ping,
	  .defaults = { .size = 2, .depth = 128, .op = W } },
	{ .name = "sig-all",
	  .what = "queues of sq_sig_all, no request asks for a completion",
	  .run = run_sig_all,
	  .defaults = { .qps = 2, .size = 4096, .rate = 5000, .op = S } },
	{ .name = "enomem",
	  .what = "posts until the Send Queue is full, in the middle of a chain",
	  .run = run_enomem,
	  .defaults = { .chain = 8, .size = 65536, .depth = 60, .op = W } },
	{ .name = "late-poller",
	  .what = "the device is fast and the thread polls late: asleep or busy",
	  .run = run_late,
	  .defaults = { .size = 4096, .rate = 1000, .late_us = 500, .op = W } },
	{ .name = "slow-device",
	  .what = "every completion takes --latency-us",
	  .run = run_slow_device,
	  .defaults = { .qps = 2, .size = 4096, .rate = 500, .latency_us = 300, .op = W } },
	{ .name = "errors",
	  .what = "failures and flushes, on separate CQs and on a shared one",
	  .run = run_errors,
	  .defaults = { .chain = 4, .size = 4096, .depth = 64, .rate = 50, .op = W } },
	{ .name = "hang",
	  .what = "one request never completes, three wait behind it",
	  .run = run_hang,
	  .leaves_work = true,
	  .defaults = { .qps = 2, .size = 4096, .rate = 1000, .op = W } },
	{ .name = "two-devices",
	  .what = "equal queue pair numbers on two devices",
	  .run = run_two_devices,
	  .defaults = { .qps = 2, .size = 4096, .rate = 4000, .op = W } },
	{ .name = "churn",
	  .what = "queue pairs come, go and are reset with work outstanding; numbers are used again",
	  .run = run_churn,
	  .defaults = { .qps = 4, .chain = 4, .size = 4096, .depth = 64, .rate = 100, .op = W } },
	{ .name = "threads",
	  .what = "threads with queues of their own and with shared ones, two pollers",
	  .run = run_threads,
	  .defaults = { .qps = 2, .chain = 2, .size = 4096, .threads = 4, .rate = 2000, .op = W } },
	{ .name = "fork-exec",
	  .what = "children that exit and exec; half-way the program executes itself",
	  .run = run_fork_exec,
	  .defaults = { .qps = 2, .chain = 2, .size = 4096, .rate = 2000, .op = W } },
	{ .name = "deep-chain",
	  .what = "chains of 128 and of 1,000",
	  .run = run_deep,
	  .defaults = { .chain = 1000, .size = 512, .depth = 2048, .rate = 100, .op = W } },
	{ .name = "sge32",
	  .what = "32 scatter entries of different lengths",
	  .run = run_sge32,
	  .defaults = { .size = 100000, .rate = 4000, .op = W } },
	{ .name = "poll256",
	  .what = "polls of 1 to 256 completions",
	  .run = run_poll256,
	  .defaults = { .qps = 4, .chain = 64, .size = 64, .depth = 256, .op = W } },
	{ .name = "srq",
	  .what = "sends to queues that share a Receive Queue",
	  .run = run_srq,
	  .defaults = { .qps = 4, .size = 1024, .depth = 64, .rate = 4000, .op = S } },
	{ .name = "ud",
	  .what = "datagrams",
	  .run = run_ud,
	  .defaults = { .qps = 2, .size = 1024, .depth = 64, .rate = 4000, .op = S } },
	{ .name = "uc",
	  .what = "unreliable connections",
	  .run = run_uc,
	  .defaults = { .qps = 2, .size = 4096, .depth = 64, .rate = 4000, .op = S } },
	{ .name = "rnr",
	  .what = "the receiver posts its receives late: the sender retries and waits",
	  .run = run_rnr,
	  .defaults = { .qps = 2, .size = 4096, .depth = 64, .rate = 1000, .late_us = 500, .op = S } },
	{ .name = "hostile-cycle",
	  .what = "a list of requests that ends in itself",
	  .run = run_hostile_cycle,
	  .defaults = { .size = 4096, .rate = 1000, .op = W } },
	{ .name = "hostile-pointer",
	  .what = "next and sg_list that point nowhere",
	  .run = run_hostile_pointer,
	  .defaults = { .size = 4096, .rate = 1000, .op = W } },
	{ .name = "hostile-chain",
	  .what = "one chain of 10,000",
	  .run = run_hostile_chain,
	  .defaults = { .chain = 10000, .size = 64, .depth = 16384, .rate = 100, .op = W } },
	{ .name = "rate",
	  .what = "as many completions a second as asked for",
	  .run = run_stream,
	  .defaults = { .qps = 4, .size = 64, .rate = 200000, .op = W } },
	{ .name = "idle-poll",
	  .what = "nearly all polls are empty",
	  .run = run_idle,
	  .defaults = { .size = 4096, .rate = 100, .op = W } },
};

const struct scenario *scenario_find(const char *name)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	return NULL;
}

void scenario_list(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		printf("  %-16s %s\n", scenarios[i].name, scenarios[i].what);
}
