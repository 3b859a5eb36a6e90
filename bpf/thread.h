/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "library.h"
#include "maps/threads.h"

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *thread =
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		count(LOSS_NO_THREAD_STATE);
	return thread;
}

static __always_inline struct thread *this_thread(void)
{
	return thread_of(bpf_get_current_task_btf());
}

/* How long after its entry a call whose return is not probed may still be the
 * one that a second probe fires for. */
#define SAME_CALL_NS 1000000000ULL

/* A file that was reached through two mounts has two probes at one instruction:
 * both fire for one call with the same registers. Whichever keeps it, the other
 * counts a duplicate; user space takes the younger probes off. */
static __always_inline bool is_followed(struct call *call, struct pt_regs *ctx, __u32 cookie,
					__u64 now)
{
	return call->active && call->cookie != cookie && call->stack == STACK(ctx) &&
	       call->instruction == IP(ctx) &&
	       (call->returns || now - call->entry_ns < SAME_CALL_NS) && !is_dropped(call->cookie);
}

/* Notes that the thread entered a call, which this probe is to follow. */
static __always_inline void begin_call(struct call *call, struct pt_regs *ctx, __u32 cookie,
				       struct library *library, __u64 now, bool returns)
{
	/* The return of the call before was not seen: it was left by a jump, or
	 * this one interrupts it. Or nobody looked when it returned. */
	if (call->active && call->returns && call->entry_ns > library->attached_ns)
		count(LOSS_NESTED_CALL);
	call->entry_ns = now;
	call->stack = STACK(ctx);
	call->instruction = IP(ctx);
	call->cookie = cookie;
	call->returns = returns;
	call->active = 1;
}

/* As begin_call, and says whether it is the probe to follow it. */
static __always_inline bool enter_call(struct call *call, struct pt_regs *ctx, __u32 cookie,
				       struct library *library, __u64 now, bool returns)
{
	if (is_followed(call, ctx, cookie, now)) {
		count_duplicate(library, call->cookie);
		return false;
	}
	begin_call(call, ctx, cookie, library, now, returns);
	return true;
}

enum left {
	LEFT,		/* the call is over and was followed from its entry */
	LEFT_DUPLICATE, /* another probe follows it */
	LEFT_UNKNOWN,	/* its entry was not seen */
};

static __always_inline enum left leave_call(struct call *call, __u32 cookie)
{
	if (call->cookie != cookie)
		return call->instruction && !is_dropped(call->cookie) ? LEFT_DUPLICATE
								      : LEFT_UNKNOWN;
	if (!call->active)
		return LEFT_UNKNOWN;
	call->active = 0;
	return LEFT;
}
