/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/libraries.h"

/* What is known of the library with a cookie; NULL for a cookie of none. */
static __always_inline struct library *library_at(__u32 cookie)
{
	return bpf_map_lookup_elem(&libraries, &cookie);
}
