/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line asks for. Every scenario has its own defaults. */
#ifndef VERBSIM_OPTIONS_H
#define VERBSIM_OPTIONS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct options {
	const char *scenario, *device, *provider;
	const char *wait_file, *ready_file, *truth, *truth_records, *sysroot;
	double seconds;	   /* 0: until the requests are posted or a signal comes */
	uint64_t requests; /* send work requests to post, 0: until the time is over */
	double latency_us, rate_gbps, spike_us, spikes_per_second, late_us, overtake_us;
	double nap_us;	   /* between polls, when the quiet time is over; 0: none */
	double rate;	   /* posts a second of the whole program, 0: as fast as it goes */
	double slow_share; /* of the posts, on a queue of their own; --spike-us late */
	double truth_slow_us;
	uint64_t size, pause_after, max_records;
	uint64_t wr_ids;       /* sequential wr_ids go round after so many, 0: they only rise */
	uint64_t evict_post;   /* whose list is not in memory, counted from 1; 0: none */
	uint64_t gather_after; /* requests before the poll of --gather */
	uint32_t depth, qps, chain, threads;
	uint32_t gather; /* completions that one poll finds, once; 0: no such poll */
	uint32_t connect_ms, warmup_quiet_ms, start_delay_ms, pause_at_ms, pause_ms;
	enum ibv_wr_opcode op;
	uint32_t refuse_every; /* posts of a queue for each round of refused ibv_modify_qp, 0: none
				*/
	uint32_t abort_every;  /* chain that is first built and aborted, 0: none */
	bool ext_post, ext_poll;
	bool evict_apart; /* the post of evict_post is of a thread that ends with it */
	bool ext_lie;	  /* while queues are connected their functions are not what they say */
	bool no_qp_num;	  /* completions of ext_poll do not tell their queue; there is one */
	bool midstream;
	bool after_exec;  /* second half of the scenario fork-exec */
	bool broken_exec; /* another thread runs it, and executes what cannot be executed */
};

struct driver;

struct scenario {
	const char *name, *what;
	int (*run)(struct driver *d);
	struct options defaults;
	bool leaves_work; /* it ends with work outstanding, as a stuck program does */
};

/* The scenario of that name, or NULL. */
const struct scenario *scenario_find(const char *name);
void scenario_list(void);

/* Parses argv[1] (the scenario) and the flags after it; exits 2 with the reason when it cannot. */
const struct scenario *options_parse(struct options *o, int argc, char **argv);

#endif
