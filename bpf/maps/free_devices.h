/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"
#include "types.h"

/* Indexes that no device has, of those that are not kept for sysfs: a device may be
 * one of another network namespace, which does not show there. Filled by user space,
 * which takes them back. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, DEVICES - SYSFS_DEVICES);
	__type(value, __u32);
} free_devices SEC(".maps");
