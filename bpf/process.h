/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/excluded.h"
#include "maps/processes.h"

/* An incarnation tells apart processes that had one PID, and the programs
 * before and after an exec. Two starts under one PID lie further apart than a
 * process can exec. */
static __always_inline struct caller caller_of(struct task_struct *task)
{
	struct caller caller = {
		.tgid = task->tgid,
		.tid = task->pid,
		.start_ns = task->group_leader->start_boottime,
	};

	caller.incarnation = caller.start_ns + task->self_exec_id;
	return caller;
}

static __always_inline struct caller current_caller(void)
{
	return caller_of(bpf_get_current_task_btf());
}

static __always_inline bool is_excluded(struct caller *caller)
{
	__u32 tgid = caller->tgid;
	__u64 *incarnation = bpf_map_lookup_elem(&excluded, &tgid);

	return incarnation && *incarnation == caller->incarnation;
}

/* How often something of any process went by unseen. As long as it stands still
 * there is no need to ask for the epoch of one. */
volatile __u32 loss_clock = 0;

/* How often something went by unseen that may have been of any of them: as the
 * programs know, and as user space reads it off probes that the kernel skipped. */
volatile __u32 common_losses = 0;
volatile __u32 skipped_runs = 0;

/* When something last went by unseen. */
volatile __u64 last_loss_ns = 0;

static __always_inline __u32 losses_of_any(void)
{
	return loss_clock + skipped_runs;
}

static __always_inline void note_common_loss(void)
{
	last_loss_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&common_losses, 1);
	__sync_fetch_and_add(&loss_clock, 1);
}

/* How often something of the process went by unseen. A queue that has not taken
 * note of the last time may have work requests or completions that are not
 * known: it is not synced any more. */
static __always_inline __u32 loss_epoch_of(struct caller *caller)
{
	__u32 tgid = caller->tgid;
	__u32 common = common_losses + skipped_runs;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);

	return process && process->incarnation == caller->incarnation ? process->loss_epoch + common
								      : common;
}

static __always_inline void note_loss(struct caller *caller)
{
	__u32 tgid = caller->tgid;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);

	last_loss_ns = bpf_ktime_get_ns();
	if (!process || process->incarnation != caller->incarnation)
		return;
	__sync_fetch_and_add(&process->loss_epoch, 1);
	__sync_fetch_and_add(&loss_clock, 1);
}
