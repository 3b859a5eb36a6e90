/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "library_find.h"

/* Since when the library counts; 0: it does not. */
static __always_inline __u64 attached_since(__u32 cookie)
{
	struct library *library = library_at(cookie);

	return library ? library->attached_ns : 0;
}

static __always_inline bool is_dropped(__u32 cookie)
{
	struct library *library = library_at(cookie);

	return !library || library->dropped;
}

/* Counts a hit that the keeper, another library, keeps for itself. */
static __always_inline void count_duplicate(struct library *library, __u32 keeper)
{
	if (library) {
		*(volatile __u64 *)&library->keeper = keeper;
		__sync_fetch_and_add(&library->duplicates, 1);
	}
	count(DUPLICATE_HITS);
}

/* Whether the returns of a library's posts are probed at present. */
static __always_inline bool has_returns(struct library *library, enum post_function function)
{
	return library && (*(volatile __u32 *)&library->returns & 1U << function);
}

/* A post failed and passed none of the sites that are to tell of it. */
static __always_inline void note_unmarked(struct library *library, enum post_function function)
{
	if (library)
		__sync_fetch_and_add(&library->unmarked[function], 1);
}

/* Something did not add up on a queue that was aligned: if its completions
 * come from sites, user space looks at those again. */
static __always_inline void suspect(__u32 cookie)
{
	struct library *library = library_at(cookie);

	if (library)
		__sync_fetch_and_add(&library->suspicions, 1);
}

/* Something was slow: if polls are not seen, user space looks at them. */
static __always_inline void note_slow(__u32 cookie)
{
	struct library *library = library_at(cookie);

	if (library)
		__sync_fetch_and_add(&library->slow, 1);
}
