/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"

/* Reads the register at an offset of struct pt_regs that is known at run time
 * only. The verifier takes constant offsets alone, and the compiler must not
 * make one load at a variable offset of these many. */
#define REGISTER(number)                                                                           \
	case number:                                                                               \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(value)                                                         \
			     : "r"(ctx), "i"((number) * 8));                                       \
		return value

static __always_inline __u64 read_register(struct pt_regs *ctx, __u32 offset)
{
	__u64 value;

	switch (offset / 8) {
		REGISTER(0);
		REGISTER(1);
		REGISTER(2);
		REGISTER(3);
		REGISTER(4);
		REGISTER(5);
		REGISTER(6);
		REGISTER(7);
		REGISTER(8);
		REGISTER(9);
		REGISTER(10);
		REGISTER(11);
		REGISTER(12);
		REGISTER(13);
		REGISTER(14);
		REGISTER(19);
#if defined(__TARGET_ARCH_arm64)
		REGISTER(15);
		REGISTER(16);
		REGISTER(17);
		REGISTER(18);
		REGISTER(20);
		REGISTER(21);
		REGISTER(22);
		REGISTER(23);
		REGISTER(24);
		REGISTER(25);
		REGISTER(26);
		REGISTER(27);
		REGISTER(28);
		REGISTER(29);
		REGISTER(30);
		REGISTER(31);
#endif
	}
	return 0;
}
