/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/region_calls.h"
#include "resource_qp.h"
#include "resource_sums.h"

/* Memory registrations of processes, whatever the driver. The RDMA core lists a
 * region once the driver has made it, and so it is counted there; entry and return
 * of the request tell how long it took, and of those that failed. */

volatile __u64 region_calls_lost = 0;

static __always_inline struct region_call *region_call_of_thread(void)
{
	__u64 thread = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&region_calls, &thread);
}

/* One that is still there did not return, as far as was seen. */
static __always_inline void keep_region_call(struct region_call *call)
{
	__u64 thread = bpf_get_current_pid_tgid();

	if (bpf_map_lookup_elem(&region_calls, &thread))
		__sync_fetch_and_add(&region_calls_lost, 1);
	if (bpf_map_update_elem(&region_calls, &thread, call, BPF_ANY))
		__sync_fetch_and_add(&region_calls_lost, 1);
}

/* Takes the call of this thread. */
static __always_inline bool take_region_call(struct region_call *call)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct region_call *kept = bpf_map_lookup_elem(&region_calls, &thread);

	if (!kept)
		return false;
	*call = *kept;
	bpf_map_delete_elem(&region_calls, &thread);
	return true;
}

static __always_inline void registration_entered(__u64 bundle, __u32 kind)
{
	struct region_call call = { .entered_ns = bpf_ktime_get_ns(),
				    .bundle = bundle,
				    .kind = kind };

	keep_region_call(&call);
}

/* A driver attaches to a dma-buf. What RDMA attaches for a region is a structure
 * that begins with its ib_umem. Of other drivers' calls none is in a registration. */
static __always_inline void dmabuf_attached(struct dma_buf *buffer, struct ib_umem *umem)
{
	struct region_call *call = region_call_of_thread();

	if (!call || !call->bundle || !bpf_core_type_exists(struct dma_buf))
		return;
	call->kind = MEMORY_DMABUF;
	bpf_probe_read_kernel_str(call->exporter, sizeof(call->exporter),
				  BPF_CORE_READ(buffer, exp_name));
	if (umem && bpf_core_type_exists(struct ib_umem))
		call->bytes = BPF_CORE_READ(umem, length);
}

static __always_inline struct region_key region_key_of(struct ib_mr *mr)
{
	struct region_key key = {
		.device = BPF_CORE_READ(mr, device, index),
		.lkey = BPF_CORE_READ(mr, lkey),
	};
	return key;
}

/* What is known of a region that a process registered; false of those of the
 * kernel. Not every driver says how long one of a dma-buf is. */
static __always_inline bool read_region(struct ib_mr *mr, struct region_call *call,
					struct region *region)
{
	struct task_struct *task = BPF_CORE_READ(mr, res.task);
	__u32 type = BPF_CORE_READ(mr, type);

	if (!task || (type != IB_MR_TYPE_USER && type != IB_MR_TYPE_DM))
		return false;
	region->tgid = BPF_CORE_READ(task, tgid);
	region->incarnation = incarnation_of(task);
	region->since_ns = bpf_ktime_get_ns();
	region->bytes = BPF_CORE_READ(mr, length);
	if (call) {
		region->kind = call->kind;
		if (!region->bytes)
			region->bytes = call->bytes;
		__builtin_memcpy(region->gpu, call->gpu, sizeof(region->gpu));
		__builtin_memcpy(region->exporter, call->exporter, sizeof(region->exporter));
	} else if (type == IB_MR_TYPE_DM) {
		region->kind = MEMORY_DEVICE;
	}
	return true;
}

static __always_inline void region_listed(struct ib_mr *mr)
{
	struct region_call *call = region_call_of_thread();
	struct region_key key = region_key_of(mr);
	struct region region = {};

	if (call && !call->bundle)
		call = NULL;
	if (!read_region(mr, call, &region))
		return;
	name_device(BPF_CORE_READ(mr, device), key.device);
	struct registrations_key owner = owner_of(&region, key.device);
	struct registrations *sums = registrations_of(&owner);
	if (sums) {
		__sync_fetch_and_add(&sums->count, 1);
		__sync_fetch_and_add(&sums->bytes, region.bytes);
	}
	add_region(&key, &region, sums);
	if (call) {
		call->since_ns = region.since_ns;
		call->key = key;
	}
}

/* The device of a request; NULL where the types of ib_uverbs are not known, and
 * of a file whose device is gone. */
static __always_inline struct ib_device *device_of_bundle(struct uverbs_attr_bundle *bundle)
{
	if (!bpf_core_type_exists(struct uverbs_attr_bundle) ||
	    !bpf_core_type_exists(struct ib_uverbs_file))
		return NULL;
	return BPF_CORE_READ(bundle, ufile, ucontext, device);
}

static __always_inline void registration_returned(int error)
{
	struct region_call call;

	if (!take_region_call(&call) || !call.bundle)
		return;
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct registrations_key owner = {
		.incarnation = incarnation_of(task),
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.device = call.key.device,
		.kind = call.kind,
	};
	if (!call.since_ns) {
		struct ib_device *device = device_of_bundle((void *)call.bundle);

		if (error >= 0 || !device) {
			__sync_fetch_and_add(&region_calls_lost, 1);
			return;
		}
		owner.error = -error;
		owner.device = BPF_CORE_READ(device, index);
		name_device(device, owner.device);
	}
	struct registrations *sums = registrations_of(&owner);
	if (!sums)
		return;
	if (owner.error)
		__sync_fetch_and_add(&sums->count, 1);
	__sync_fetch_and_add(&sums->time_ns, bpf_ktime_get_ns() - call.entered_ns);
}

/* A region that is listed on demand may have been there before the probes. */
static __always_inline void region_shown(struct rdma_restrack_entry *entry)
{
	struct ib_mr *mr = (void *)entry - bpf_core_field_offset(struct ib_mr, res);
	struct region_key key = region_key_of(mr);
	struct region *known = bpf_map_lookup_elem(&regions, &key);
	struct region region = {};

	if ((known && !known->ended_ns) || !read_region(mr, NULL, &region))
		return;
	name_device(BPF_CORE_READ(mr, device), key.device);
	struct registrations_key owner = owner_of(&region, key.device);
	add_region(&key, &region, registrations_of(&owner));
}

/* The region ends here, not at the return: until then its key is not given to
 * another one. */
static __always_inline void deregistration_entered(struct ib_mr *mr)
{
	struct region_call call = { .entered_ns = bpf_ktime_get_ns(), .key = region_key_of(mr) };
	struct region *region = bpf_map_lookup_elem(&regions, &call.key);

	if (!region)
		return;
	call.since_ns = region->since_ns;
	if (end_region(region, call.key.device, call.entered_ns))
		keep_region_call(&call);
}

static __always_inline void deregistration_returned(int error)
{
	struct region_call *kept = region_call_of_thread();
	struct region_call call;

	if (!kept || kept->bundle || !take_region_call(&call))
		return;
	struct region *region = bpf_map_lookup_elem(&regions, &call.key);
	/* Another one may have its key by now. */
	if (!region || region->since_ns != call.since_ns)
		return;
	struct registrations *sums = sums_of(region, call.key.device);
	if (error)
		revive_region(region, call.key.device, call.entered_ns);
	else if (sums)
		__sync_fetch_and_add(&sums->ended_time_ns, bpf_ktime_get_ns() - call.entered_ns);
}
