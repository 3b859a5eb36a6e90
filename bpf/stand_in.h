/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "types.h"

/* Who had a CPU that another thread wanted, summed up by thread. */

static __always_inline void describe(struct stand_in *who, struct task_struct *task)
{
	who->ns = 0;
	who->tid = task->pid;
	who->tgid = task->tgid;
	__builtin_memcpy(who->comm, task->comm, sizeof(who->comm));
}

/* Where no place is left, the new one and all others lose the same, the time of whoever
 * of them had the CPU least, who goes (Misra and Gries). So nobody is driven out by who
 * comes in turn: times are lower bounds, by a fifth of all at most, and who had the CPU
 * for longer than that stays. Not static, see claim_request. */
__noinline int add_turn(struct stand_ins *to, struct stand_in *who)
{
	if (!to || !who || !who->ns)
		return 0;
	__u32 place = 0;
	for (__u32 i = 0; i < STAND_INS; i++) {
		struct stand_in *known = &to->of[i];

		if (known->ns && known->tid == who->tid) {
			known->ns += who->ns;
			return 0;
		}
		if (known->ns < to->of[place % STAND_INS].ns)
			place = i;
	}
	struct stand_in *least = &to->of[place % STAND_INS];
	__u64 lost_ns = least->ns < who->ns ? least->ns : who->ns;

	for (__u32 i = 0; lost_ns && i < STAND_INS; i++)
		to->of[i].ns -= lost_ns;
	if (who->ns == lost_ns)
		return 0;
	*least = *who;
	least->ns -= lost_ns;
	return 0;
}

static __always_inline struct stand_in *longest_of(struct stand_ins *all)
{
	__u32 longest = 0;

	for (__u32 i = 1; i < STAND_INS; i++)
		if (all->of[i].ns > all->of[longest % STAND_INS].ns)
			longest = i;
	return &all->of[longest % STAND_INS];
}
