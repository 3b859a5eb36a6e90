/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"
#include "libbpf/bpf_helpers.h"

/* The verbs of a device's driver, as addresses in the kernel's text. */
struct driver_verbs {
	__u64 post_send;
	__u64 post_recv;
	__u64 post_srq_recv;
	__u64 poll_cq;
};

/* The drivers of the devices that were asked for their ports, by the driver's
 * poll_cq. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, struct driver_verbs);
} driver_functions SEC(".maps");
