/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "counters.h"
#include "kernel_reader.h"
#include "maps/consumers.h"

/* Who uses verbs in the kernel, and in which context. */

/* The next index that no consumer has; 0 is for those without a name. */
volatile __u32 next_consumer = 1;

/* The QPs of consumers in the kernel, less those for management: datagrams of
 * QP 0 and 1, which some drivers send through a second QP, and what drivers have
 * for themselves. A process posts to its own QPs, and some drivers call the same
 * function when it rings a doorbell. */
static __always_inline bool is_consumers_qp(__u64 address)
{
	struct ib_qp *qp = (void *)address;
	void *uobject = NULL;

	if (bpf_core_read(&uobject, sizeof(uobject), &qp->uobject)) {
		count(LOSS_READ_QP);
		return false;
	}
	if (uobject)
		return false;
	__u32 type = BPF_CORE_READ(qp, qp_type);
	return type > IB_QPT_GSI && type < IB_QPT_RESERVED1;
}

static __always_inline bool is_consumers_srq(__u64 address)
{
	return BPF_CORE_READ((struct ib_srq *)address, uobject) == NULL;
}

static __always_inline bool is_consumers_cq(__u64 address)
{
	return BPF_CORE_READ((struct ib_cq *)address, uobject) == NULL;
}

/* A consumer that is not known by the address of its name. Not inlined, for a
 * stack of its own. */
static __noinline __u32 consumer_named(__u64 address)
{
	struct consumer_name name = {};

	if (bpf_probe_read_kernel_str(name.text, sizeof(name.text), (void *)address) <= 1)
		return 0;
	__u32 *known = bpf_map_lookup_elem(&consumers, &name);
	__u32 index = known ? *known : 0;
	if (!known) {
		index = next_consumer < KERNEL_CONSUMERS ? __sync_fetch_and_add(&next_consumer, 1)
							 : KERNEL_CONSUMERS;
		if (index >= KERNEL_CONSUMERS) {
			count(LOSS_CONSUMERS_FULL);
			return 0;
		}
		if (bpf_map_update_elem(&consumers, &name, &index, BPF_NOEXIST)) {
			/* Another CPU named it first. */
			known = bpf_map_lookup_elem(&consumers, &name);
			index = known ? *known : 0;
		}
	}
	bpf_map_update_elem(&consumer_names, &address, &index, BPF_ANY);
	return index;
}

/* The index of the consumer that a protection domain is of: it makes that itself,
 * while the connection manager makes its QP and the RDMA core its CQ. */
static __always_inline __u32 consumer_of(__u64 pd)
{
	__u64 name = (__u64)BPF_CORE_READ((struct ib_pd *)pd, res.kern_name);
	__u32 *known = bpf_map_lookup_elem(&consumer_names, &name);

	if (known)
		return *known;
	return name ? consumer_named(name) : 0;
}

/* The stack of a thread is no longer than this anywhere: an address beyond it
 * is on the stack of an interrupt. */
#define LONGEST_STACK (64 * 1024)

/* What runs at this moment, as far as the order of posts goes: a thread; or what
 * interrupted it, of which there is one on a CPU. */
static __always_inline __u32 context_id(__u64 frame)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 stack = (__u64)BPF_CORE_READ(task, stack);
	__u32 pid = BPF_CORE_READ(task, pid);

	if (pid == 0 || frame - stack >= LONGEST_STACK)
		return NO_THREAD | bpf_get_smp_processor_id();
	return pid;
}

static __always_inline struct caller consumer_caller(__u32 consumer, __u64 frame)
{
	struct caller caller = {
		.incarnation = KERNEL_INCARNATION,
		.tgid = KERNEL_TGID | consumer,
		.tid = context_id(frame),
	};
	return caller;
}
