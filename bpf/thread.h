/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "maps/libraries.h"
#include "maps/threads.h"

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		count(LOSS_NO_THREAD_STATE);
	return thread;
}

static __always_inline struct thread *this_thread(void)
{
	return thread_of(bpf_get_current_task_btf());
}

static __always_inline bool is_dropped(__u32 cookie)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	return !library || library->dropped;
}

static __always_inline __u64 attached_since(__u32 cookie)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	return library ? library->attached_ns : 0;
}

/* Counts a hit that the keeper, another library, keeps for itself. */
static __always_inline void count_duplicate(__u32 cookie, __u32 keeper)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	if (library) {
		*(volatile __u64 *)&library->keeper = keeper;
		__sync_fetch_and_add(&library->duplicates, 1);
	}
	count(DUPLICATE_HITS);
}

/* How long after its entry a call whose return is not probed may still be the
 * one that a second probe fires for. */
#define SAME_CALL_NS 1000000000ULL

/* A file that was reached through two mounts has two probes at one instruction:
 * both fire for one call with the same registers. Whichever keeps it, the other
 * counts a duplicate; user space takes the younger probes off. */
static __always_inline bool is_followed(struct call *call, struct pt_regs *ctx, __u32 cookie, __u64 now)
{
	return call->active && call->cookie != cookie && call->stack == STACK(ctx) && call->instruction == IP(ctx) &&
	       (call->returns || now - call->entry_ns < SAME_CALL_NS) && !is_dropped(call->cookie);
}

/* Notes that the thread entered a call, and says whether it is the probe to
 * follow it. */
static __always_inline bool enter_call(struct call *call, struct pt_regs *ctx, __u32 cookie, __u64 now, bool returns)
{
	if (is_followed(call, ctx, cookie, now)) {
		count_duplicate(cookie, call->cookie);
		return false;
	}
	/* The return of the call before was not seen: it was left by a jump, or
	 * this one interrupts it. Or nobody looked when it returned. */
	if (call->active && call->returns && call->entry_ns > attached_since(cookie))
		count(LOSS_NESTED_CALL);
	call->entry_ns = now;
	call->stack = STACK(ctx);
	call->instruction = IP(ctx);
	call->cookie = cookie;
	call->returns = returns;
	call->active = 1;
	return true;
}

/* Whether the returns of a library's posts are probed at present. */
static __always_inline bool has_returns(__u32 cookie, enum post_function function)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	return library && (*(volatile __u32 *)&library->returns & 1U << function);
}

/* A post failed and passed none of the sites that are to tell of it. */
static __always_inline void note_unmarked(__u32 cookie, enum post_function function)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	if (library)
		__sync_fetch_and_add(&library->unmarked[function], 1);
}

/* Something did not add up on a queue that was aligned: if its completions
 * come from sites, user space looks at those again. */
static __always_inline void suspect(__u32 cookie)
{
	struct library *library = bpf_map_lookup_elem(&libraries, &cookie);

	if (library)
		__sync_fetch_and_add(&library->suspicions, 1);
}

enum left {
	LEFT,		/* the call is over and was followed from its entry */
	LEFT_DUPLICATE, /* another probe follows it */
	LEFT_UNKNOWN,	/* its entry was not seen */
};

static __always_inline enum left leave_call(struct call *call, __u32 cookie)
{
	if (call->cookie != cookie)
		return call->instruction && !is_dropped(call->cookie) ? LEFT_DUPLICATE : LEFT_UNKNOWN;
	if (!call->active)
		return LEFT_UNKNOWN;
	call->active = 0;
	return LEFT;
}
