/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "counters.h"
#include "knobs.h"
#include "maps/device_index.h"
#include "maps/devices.h"
#include "maps/free_devices.h"
#include "verbs_reader.h"

struct device_name {
	char text[IBV_DEVICE_NAME_LEN];
};

static __always_inline __u32 new_device(struct device_name *name)
{
	__u32 index = 0;
	struct device *device = NULL;

	if (!bpf_map_pop_elem(&free_devices, &index))
		device = bpf_map_lookup_elem(&devices, &index);
	if (!device) {
		count(LOSS_DEVICES_FULL);
		return NO_DEVICE;
	}
	__builtin_memcpy(device->name, name->text, sizeof(name->text));
	__sync_lock_test_and_set(&device->ready, 1);
	if (bpf_map_update_elem(&device_index, name, &index, BPF_NOEXIST) == 0)
		return index;

	/* Another CPU named it first; this index stays without a queue, and user space
	 * takes it back with the other. */
	__u32 *known = bpf_map_lookup_elem(&device_index, name);
	return known ? *known : NO_DEVICE;
}

/* The index of the device of an ibv_context, NO_DEVICE when its name cannot be
 * read. Called once for a queue. */
static __noinline __u32 device_of_context(__u64 context)
{
	struct device_name name = {};

	if (read_device_name(name.text, sizeof(name.text), context) <= 1)
		return NO_DEVICE;

	__u32 *known = bpf_map_lookup_elem(&device_index, &name);
	return known ? *known : new_device(&name);
}

static __always_inline struct device *device_at(__u32 index)
{
	return bpf_map_lookup_elem(&devices, &index);
}

static __always_inline bool is_ignored_device(__u32 index)
{
	struct device *device = device_at(index);

	return device && device->ignored;
}
