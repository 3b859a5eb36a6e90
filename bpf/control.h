/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "maps/control_events.h"

/* How long user space waits before it looks at a process for the second time. */
#define TELL_AGAIN_NS 100000000ULL

static __always_inline bool tell(__u32 kind, __u32 tgid, __u64 incarnation)
{
	struct control_event event = {
		.kind = kind,
		.tgid = tgid,
		.incarnation = incarnation,
		.time_ns = bpf_ktime_get_ns(),
	};

	__builtin_memcpy(event.comm, bpf_get_current_task_btf()->group_leader->comm,
			 sizeof(event.comm));
	if (bpf_ringbuf_output(&control_events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP) == 0)
		return true;
	count(LOSS_CONTROL_DROPPED);
	return false;
}
