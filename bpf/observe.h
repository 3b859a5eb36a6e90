/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "cost.h"
#include "process.h"
#include "thread.h"
#include "watched.h"

/* A hit on a probe: the thread that ran into it, and the library that the probe
 * stands in; NULL when what the library does does not count at this moment. */
struct observed {
	struct task_struct *task;
	struct thread *thread;
	struct library *library;
	__u32 cookie; /* of the library */
};

/* Charges the hit to the thread. Without room for the thread's state what it does
 * goes by unseen. */
static __always_inline struct observed observe(__u32 cookie, enum hit hit)
{
	struct observed seen = { .task = bpf_get_current_task_btf(), .cookie = cookie };

	seen.thread = thread_of(seen.task);
	if (!seen.thread) {
		struct caller caller = caller_of(seen.task);

		note_loss(&caller);
		return seen;
	}
	if (!seen.thread->poller.watched)
		watch(seen.thread, seen.task->pid);
	struct library *library = library_at(cookie);
	if (!library)
		return seen;
	charge_hit(seen.thread, library, hit);
	/* It counts from the moment that all probes stand until the first one
	 * goes. */
	if (library->attached_ns)
		seen.library = library;
	return seen;
}
