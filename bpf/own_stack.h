/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "loop.h"
#include "maps/no_programs.h"

/* From Linux 6.13 on the kernel gives a tracing program whose stack is 64 bytes
 * or more a private stack, one for each CPU, and relies on nobody entering the
 * program on that CPU before it is left. Kprobes and tracepoints see to that,
 * uprobes do not: on a preemptible kernel, as Debian's 7.3 with PREEMPT_LAZY,
 * another thread that runs the program meanwhile writes over the stack of the
 * first, and the kernel follows wild pointers. A program with a tail call in it
 * has no private stack (check_max_stack_depth() in kernel/bpf/verifier.c). This
 * one is never made; every uprobe program begins with it. */
static __always_inline void keep_own_stack(void *ctx)
{
	if (some_zero)
		bpf_tail_call(ctx, &no_programs, 0);
}
