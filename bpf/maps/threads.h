/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended_types.h"
#include "libbpf/bpf_helpers.h"
#include "measure.h"
#include "types.h"

/* A call that a thread is inside of, from its entry to its return, or to the
 * next that is seen of the thread where the return is not probed. */
struct call {
	__u64 entry_ns;
	__u64 stack, instruction;
	__u64 object; /* qp, cq or srq */
	__u64 list;   /* work requests or completions */
	__u64 bad;    /* where the callee stores *bad_wr */
	__u64 first;  /* the first sequence number reserved */
	__u64 generation;
	__u64 unread; /* the work request that could not be read, 0: none */
	__u32 slot;
	__u32 count;
	__u32 cookie;
	__u32 active;
	__u32 function; /* index of the poll_cq, or enum post_function */
	__u32 returns;	/* its return is probed */
	__u32 refused;	/* it passed a site of *bad_wr */
	__u32 untimed;	/* its entry was not seen: its requests are not timed */
};

/* The slots of the queues that a thread worked on last, by QP number. */
#define RECENT_QUEUES 16

/* What a thread is inside of, and the scratch memory of its programs: a thread
 * runs one at a time, so that nobody else writes here, while per-CPU memory
 * changes hands whenever a program is preempted. */
struct thread {
	struct call post;
	struct call receive;
	struct call poll;
	struct call extended_poll; /* next_poll */
	/* What completion sites saw inside of the poll: compared at its return. */
	__u64 site_digest;
	__u32 site_hits;
	/* The last completion that a site delivered, to know its double. */
	__u32 site_library;
	__u64 site_wc, site_stack, site_instruction, site_ns;
	__u64 create_attr;		/* of the ibv_create_qp it is in */
	__u64 command_qp, command_attr; /* of the ibv_cmd_create_qp it is in */
	/* Of the ibv_modify_qp it is in, and the QP's state at its entry. */
	__u64 modify_qp, modify_attr;
	__u32 modify_mask, modify_state;
	/* What its probes cost since the last look, see cost.h. */
	__u64 cost_ns;
	__u32 cost_tick;
	__u32 hits, works;
	/* The last poll whose entry was seen beside sites, see look.h. */
	__u32 look_hits; /* completions that it delivered */
	__u64 look_cookie, look_stack, look_instruction;
	__u64 look_cq, look_ns;
	__u64 look_paused_ns; /* the sum of the times between polls that were pauses */
	__u64 sampled_ns;     /* when it last gave a sample, see cqe.h */
	struct poller poller;
	__u32 recent[RECENT_QUEUES];
	struct caller caller;
	struct delivery delivery;
	struct unit unit;
	struct extended_set set;    /* that was read of an object */
	struct slow_event event;    /* to be reported */
	struct stand_ins stand_ins; /* of the request that it is of, see scheduling.h */
};

/* The kernel frees it with the thread: nothing leaks when one is killed inside
 * a call. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");
