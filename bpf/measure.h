/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "abi.h"
#include "types.h"

/* A delivered unit of work and the moments that its duration is split at. */
struct unit {
	__u64 wr_id;
	__u64 posted_ns;
	__u64 returned_ns; /* 0: not known */
	__u64 delivered_ns;
	__u64 previous_ns;   /* delivery of the queue's previous unit, 0: none */
	__u64 short_poll_ns; /* entry of the last short poll of the CQ, 0: none known */
	__u64 port_bytes;    /* what the port retired between post and delivery */
	__u64 bytes;
	__u32 requests;
	__u32 outstanding;
	__u32 tid, cpu;
	__u32 vendor_error;
	__u32 lkey; /* of the request, 0: not known */
	__u8 operation;
	__u8 status;
	__u8 flags, ambiguous; /* of the entry */
	__u8 known_stages;
	__u8 has_busy;
	__u8 pad[2];
	__u64 sequence;
	__u64 stage_ns[STAGES];
	__u64 busy_ns;
	__u64 limit_ns; /* that duration − busy exceeded */
};

/* Which queue a completion is of, where the device says so. */
enum queue_told {
	TOLD_NOT,
	TOLD_SEND,
	TOLD_RECEIVE,
};

/* What poll_cq handed over, to whom, and in which poll. */
struct delivery {
	struct caller caller;
	__u64 cq_address;
	__u64 now;
	__u64 cq_context;
	__u64 short_poll_ns; /* entry of the last short poll, or what stands for it; 0: not known */
	__u64 evidence_ns;   /* it counts for what was posted before this */
	struct ibv_wc wc;
	__u32 steps;	    /* of searching that are left, see match.h */
	__u32 unordered;    /* another thread may deliver what comes before it */
	__u32 queue_told;   /* enum queue_told: what the device says of a failed completion */
	__u64 cqe_stamp;    /* see cqe.h */
	__u64 elsewhere_ns; /* since short_poll_ns: see look.h */
	__u32 has_cqe;	    /* the CQ entry was read */
	__u32 has_elsewhere;
};

static __always_inline __u64 clamp_ns(__u64 value, __u64 low, __u64 high)
{
	if (value < low)
		return low;
	return value > high ? high : value;
}

/* Splits the duration into stages that add up to it.
 *
 *   return known, poll known    post | queue | device     | poll
 *   return known, poll unknown  post | queue | completion
 *   return unknown              submit       | completion | poll where it is known
 *
 * What comes before device or completion ends when the unit has become the oldest
 * of its queue. Where the return of the post is not known, the end of that call
 * may come later: then what follows is not called device. */
static __always_inline void split_stages(struct unit *unit)
{
	__u64 end = unit->delivered_ns;
	bool returned = unit->returned_ns != 0;
	bool polled = unit->short_poll_ns != 0;
	__u64 posted = returned ? clamp_ns(unit->returned_ns, unit->posted_ns, end)
				: unit->posted_ns;
	__u64 ready = polled ? clamp_ns(unit->short_poll_ns, posted, end) : end;
	__u64 head = clamp_ns(unit->previous_ns, posted, ready);

	for (int i = 0; i < STAGES; i++)
		unit->stage_ns[i] = 0;
	if (returned) {
		unit->stage_ns[STAGE_POST] = posted - unit->posted_ns;
		unit->stage_ns[STAGE_QUEUE] = head - posted;
		unit->known_stages = 1 << STAGE_POST | 1 << STAGE_QUEUE;
	} else {
		unit->stage_ns[STAGE_SUBMIT] = head - unit->posted_ns;
		unit->known_stages = 1 << STAGE_SUBMIT;
	}
	if (returned && polled) {
		unit->stage_ns[STAGE_DEVICE] = ready - head;
		unit->known_stages |= 1 << STAGE_DEVICE;
	} else {
		unit->stage_ns[STAGE_COMPLETION] = ready - head;
		unit->known_stages |= 1 << STAGE_COMPLETION;
	}
	if (polled) {
		unit->stage_ns[STAGE_POLL] = end - ready;
		unit->known_stages |= 1 << STAGE_POLL;
	}
}

#define GIB_SHIFT 30

/* The same of less than 1 GiB: user space keeps ns_per_gib below 2^36. */
static __always_inline __u64 busy_part_ns(__u64 bytes, __u64 ns_per_gib)
{
	if (bytes < 1ULL << 28)
		return bytes * ns_per_gib >> GIB_SHIFT;
	return (bytes >> 10) * ns_per_gib >> (GIB_SHIFT - 10);
}

/* How long the port needs for so many bytes. A request may hang while others move
 * any number of them. */
static __always_inline __u64 busy_ns(__u64 bytes, __u64 ns_per_gib)
{
	__u64 whole = bytes >> GIB_SHIFT;

	if (whole >= 1ULL << 28)
		return ~0ULL;
	return whole * ns_per_gib + busy_part_ns(bytes & ((1ULL << GIB_SHIFT) - 1), ns_per_gib);
}
