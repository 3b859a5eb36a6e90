/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/counters.h"

static __always_inline void count_n(__u32 which, __u64 n)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &which);

	if (value)
		__sync_fetch_and_add(value, n);
}

static __always_inline void count(__u32 which)
{
	count_n(which, 1);
}
