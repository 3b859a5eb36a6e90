/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "libbpf/bpf_core_read.h"
#include "maps/excluded.h"
#include "maps/processes.h"

/* An incarnation tells apart processes that had one PID, and the programs
 * before and after an exec. Two starts under one PID lie further apart than a
 * process can exec. */
static __always_inline struct caller current_caller(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 ids = bpf_get_current_pid_tgid();
	struct caller caller = {.tgid = ids >> 32, .tid = (__u32)ids};

	caller.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	caller.incarnation = caller.start_ns + BPF_CORE_READ(task, self_exec_id);
	return caller;
}

static __always_inline bool is_excluded(struct caller *caller)
{
	__u64 *incarnation = bpf_map_lookup_elem(&excluded, &caller->tgid);

	return incarnation && *incarnation == caller->incarnation;
}

/* How often something of the process went by unseen. A queue that has not taken
 * note of the last time may have work requests or completions that are not
 * known: it is not synced any more. */
static __always_inline __u32 loss_epoch_of(struct caller *caller)
{
	struct process *process = bpf_map_lookup_elem(&processes, &caller->tgid);

	return process && process->incarnation == caller->incarnation ? process->loss_epoch : 0;
}

static __always_inline void note_loss(struct caller *caller)
{
	struct process *process = bpf_map_lookup_elem(&processes, &caller->tgid);

	if (process && process->incarnation == caller->incarnation)
		__sync_fetch_and_add(&process->loss_epoch, 1);
}
