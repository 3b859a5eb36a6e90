/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VERBSIM_SCENARIOS_H
#define VERBSIM_SCENARIOS_H

#include "flow.h"

int run_nccl(struct driver *d);
int run_stream(struct driver *d);
int run_constant(struct driver *d);
int run_ping(struct driver *d);
int run_sig_all(struct driver *d);
int run_sge32(struct driver *d);
int run_poll256(struct driver *d);
int run_idle(struct driver *d);
int run_slow_device(struct driver *d);
int run_late(struct driver *d);
int run_busy(struct driver *d);
int run_stalled(struct driver *d);
int run_starved(struct driver *d);
int run_deep(struct driver *d);
int run_enomem(struct driver *d);
int run_unsignaled(struct driver *d);
int run_varied(struct driver *d);
int run_hang(struct driver *d);
int run_two_devices(struct driver *d);
int run_srq(struct driver *d);
int run_ud(struct driver *d);
int run_uc(struct driver *d);
int run_rnr(struct driver *d);
int run_errors(struct driver *d);
int run_churn(struct driver *d);
int run_threads(struct driver *d);
int run_fork_exec(struct driver *d);
int run_hostile_cycle(struct driver *d);
int run_hostile_pointer(struct driver *d);
int run_hostile_chain(struct driver *d);

/* setup shared by the scenarios, in scenario_streams.c */
struct streams {
	struct completion_queue *cq;
	struct flow *flows;
	struct plan plan;
};

/*
 * opt.qps queues to remote hosts on one Completion Queue, a flow for each, and
 * with opt.slow_share one more for the posts that are late.
 */
void streams_open(struct driver *d, struct streams *s, struct device *dev, uint32_t sges,
		  bool sig_all);

#endif
