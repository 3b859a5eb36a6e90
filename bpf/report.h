/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "baseline.h"
#include "counters.h"
#include "device.h"
#include "knobs.h"
#include "library.h"
#include "maps/entry_spans.h"
#include "maps/slow_events.h"
#include "measure.h"
#include "process.h"
#include "scheduling.h"
#include "series.h"
#include "thread.h"
#include "traffic.h"
#include "verbs_reader.h"

static __always_inline __u64 wakeup_flag(void)
{
	if (bpf_ringbuf_query(&slow_events, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

static __always_inline void copy_span(struct slow_event *event, struct queue *queue,
				      struct unit *unit)
{
	struct entry_ref ref = { .generation = queue->generation, .sequence = unit->sequence };
	struct trace_context *span = have_trace_contexts ? bpf_map_lookup_elem(&entry_spans, &ref)
							 : NULL;

	if (span) {
		__builtin_memcpy(event->trace_id, span->trace_id, sizeof(span->trace_id));
		__builtin_memcpy(event->span_id, span->span_id, sizeof(span->span_id));
	} else {
		__builtin_memset(event->trace_id, 0, sizeof(event->trace_id));
		__builtin_memset(event->span_id, 0, sizeof(event->span_id));
	}
}

/* What the thread polled before the post is no part of the stage. */
static __always_inline __u32 polled_elsewhere_us(const struct delivery *delivery,
						 const struct unit *unit)
{
	__u64 before = unit->posted_ns > unit->short_poll_ns ? unit->posted_ns - unit->short_poll_ns
							     : 0;
	__u64 elsewhere = delivery->elsewhere_ns;

	if (!delivery->has_elsewhere || !unit->short_poll_ns)
		return ELSEWHERE_UNKNOWN;
	elsewhere = elsewhere > before ? elsewhere - before : 0;
	return elsewhere / 1000 < ELSEWHERE_UNKNOWN ? elsewhere / 1000 : ELSEWHERE_UNKNOWN;
}

/* The record is made before there is room for it in the ring buffer: a thread that
 * is preempted between the two would keep all that comes after it from the reader. */
static __noinline void report_slow(struct queue *queue, struct thread *thread)
{
	const struct delivery *delivery = &thread->delivery;
	struct unit *unit = &thread->unit;
	struct slow_event *event = &thread->event;

	event->incarnation = queue->key.incarnation;
	event->start_ns = queue->start_ns;
	event->context = queue->key.object;
	event->cq = delivery->cq_address;
	event->wr_id = shown_wr_id(unit->wr_id);
	event->posted_ns = unit->posted_ns;
	event->delivered_ns = unit->delivered_ns;
	event->cqe_stamp = read_cqe_stamps ? delivery->cqe_stamp : 0;
	for (int i = 0; i < STAGES; i++)
		event->stage_ns[i] = unit->stage_ns[i];
	event->bytes = unit->bytes;
	event->busy_ns = unit->busy_ns;
	event->threshold_ns = unit->limit_ns;
	copy_span(event, queue, unit);
	event->tgid = queue->key.tgid;
	event->qp_num = queue->key.qp_num;
	event->remote_qp = queue->remote_qp;
	event->requests = unit->requests;
	event->outstanding = unit->outstanding;
	event->vendor_error = unit->vendor_error;
	event->post_tid = unit->tid;
	event->post_cpu = unit->cpu;
	event->poll_tid = delivery->caller.tid;
	event->poll_cpu = bpf_get_smp_processor_id();
	event->lkey = unit->lkey;
	event->elsewhere_us = polled_elsewhere_us(delivery, unit);
	__builtin_memset(event->poll_comm, 0, sizeof(event->poll_comm));
	if (is_thread(delivery->caller.tid))
		bpf_get_current_comm(event->poll_comm, sizeof(event->poll_comm));
	report_scheduling(thread);
	event->device = queue->device;
	event->port = queue->port;
	event->qp_type = queue->qp_type;
	event->operation = unit->operation;
	event->status = unit->status;
	event->known_stages = unit->known_stages;
	event->has_busy = unit->has_busy;
	note_slow(queue->library);
	if (bpf_ringbuf_output(&slow_events, event, sizeof(*event), wakeup_flag()))
		count(LOSS_EVENT_DROPPED);
}

/* Adds a measured unit to its series, and reports it when it was slow. */
static __always_inline void account_unit(struct queue *queue, struct thread *thread,
					 struct series *series)
{
	struct unit *unit = &thread->unit;
	struct device *device = device_at(queue->device);
	__u64 rate = device ? device->ns_per_gib : 0;
	__u64 duration = unit->delivered_ns - unit->posted_ns;

	unit->has_busy = rate != 0;
	unit->busy_ns = rate ? busy_ns(unit->port_bytes, rate) : 0;
	split_stages(unit);
	/* The bucket is not kept for long: each value of it is a path to the verifier. */
	__u32 bucket = bucket_of(duration);
	add_queue_duration(queue, bucket);
	if (series) {
		add_duration(series, duration, bucket);
		for (int i = 0; i < STAGES; i++)
			if (unit->stage_ns[i])
				__sync_fetch_and_add(&series->stage_ns[i], unit->stage_ns[i]);
	}
	if (duration <= threshold_ns || duration - threshold_ns <= unit->busy_ns) {
		if (device && device->learns)
			sample_fast(queue, unit, duration);
		return;
	}

	__u64 excess = duration - unit->busy_ns;
	unit->limit_ns = threshold_ns;
	if (threshold_ns && device && !exceeds_usual(queue, device, unit, excess)) {
		count(SLOW_USUAL);
		return;
	}
	count(SLOW_SEEN);
	__sync_fetch_and_add(&queue->slow, 1);
	if (series) {
		__sync_fetch_and_add(&series->slow, 1);
		__sync_fetch_and_add(&series->excess_ns, excess);
	}
	if (device && excess <= device->floor_ns) {
		count(SLOW_BELOW_FLOOR);
		return;
	}
	report_slow(queue, thread);
}
