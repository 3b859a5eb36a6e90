/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "libbpf/bpf_core_read.h"
#include "maps/pollers.h"
#include "measure.h"

/* A completion site does not see empty polls, and so not when the thread last
 * looked. What is left as evidence of a late poller is that its thread was not
 * running: it looked at the latest before it left its CPU, and if it delivers
 * shortly after it came back, the completion may have waited since then. */
#define BACK_NS 50000

static __always_inline void note_switch(struct task_struct *previous, struct task_struct *next)
{
	__u32 out = BPF_CORE_READ(previous, pid);
	__u32 in = BPF_CORE_READ(next, pid);
	struct poller *poller = bpf_map_lookup_elem(&pollers, &out);
	__u64 now = bpf_ktime_get_ns();

	if (poller)
		poller->off_since = now;
	poller = bpf_map_lookup_elem(&pollers, &in);
	if (poller && poller->off_since) {
		poller->off_start = poller->off_since;
		poller->off_end = now;
		poller->off_since = 0;
	}
}

/* Notes when the delivering thread left its CPU, if it has just come back. That
 * says nothing of what it posted since. */
static __always_inline void note_absence(struct delivery *delivery)
{
	struct poller *poller = bpf_map_lookup_elem(&pollers, &delivery->caller.tid);

	delivery->short_poll_ns = 0;
	delivery->evidence_ns = 0;
	if (!poller) {
		struct poller fresh = {};

		bpf_map_update_elem(&pollers, &delivery->caller.tid, &fresh, BPF_NOEXIST);
		return;
	}
	if (poller->off_end && delivery->now - poller->off_end < BACK_NS) {
		delivery->short_poll_ns = poller->off_start;
		delivery->evidence_ns = poller->off_end;
	}
}
