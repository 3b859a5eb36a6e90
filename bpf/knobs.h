/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "libbpf/bpf_helpers.h"
#include "types.h"

/* Variables that all objects with the queue tracker have in common. */
#define SHARED SEC(".data.shared")

/* Set by user space before the programs are loaded. */

/* The limit that duration − busy has to exceed, ns. */
const volatile __u64 threshold_ns = 50000;
/* Upper edges of the histogram's buckets, ns. */
const volatile __u64 histogram_edges[HISTOGRAM_BUCKETS] = {};
/* Whether a map of application spans was found. */
const volatile bool have_trace_contexts = false;
/* Whether the time stamps of CQ entries are read, see cqe.h. */
const volatile bool read_cqe_stamps = false;
/* How many bytes wait in the ring buffer before the reader is woken. */
const volatile __u64 wakeup_bytes = 4096;

/* Set by user space where there is no probe on file mappings: then it looks at
 * every program that is started. */
volatile __u32 watch_execs = 0;

/* Raised by user space with every collection, so that peaks start anew. */
volatile __u32 collection SHARED = 0;
