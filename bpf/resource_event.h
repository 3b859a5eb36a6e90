/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/async_events.h"
#include "resource_qp.h"

volatile __u64 async_events_lost = 0;

/* A part of the ordinary life of a queue, as often as connections come and go. */
static __always_inline bool is_ordinary(__u32 event)
{
	return event == IB_EVENT_COMM_EST || event == IB_EVENT_SQ_DRAINED ||
	       event == IB_EVENT_SRQ_LIMIT_REACHED || event == IB_EVENT_QP_LAST_WQE_REACHED;
}

static __always_inline bool is_of_qp(__u32 event)
{
	return event == IB_EVENT_QP_FATAL || event == IB_EVENT_QP_REQ_ERR ||
	       event == IB_EVENT_QP_ACCESS_ERR || event == IB_EVENT_PATH_MIG ||
	       event == IB_EVENT_PATH_MIG_ERR;
}

/* Of a port, less what was told apart before. */
static __always_inline bool is_of_port(__u32 event)
{
	return event > IB_EVENT_DEVICE_FATAL && event < IB_EVENT_WQ_FATAL;
}

static __always_inline void tell_owner(struct async_event *out, struct task_struct *task)
{
	if (!task)
		return;
	out->tgid = BPF_CORE_READ(task, tgid);
	out->incarnation = incarnation_of(task);
}

static __always_inline void tell_cq(struct async_event *out, struct ib_cq *cq)
{
	out->cq_number = BPF_CORE_READ(cq, res.id);
	out->has_cq = 1;
}

static __always_inline void tell_qp(struct async_event *out, struct ib_qp *qp)
{
	struct ib_cq *cq = BPF_CORE_READ(qp, send_cq);

	out->qp_num = BPF_CORE_READ(qp, qp_num);
	out->has_qp = 1;
	out->port = BPF_CORE_READ(qp, port);
	tell_owner(out, BPF_CORE_READ(qp, res.task));
	if (cq)
		tell_cq(out, cq);
}

static __always_inline void tell_element(struct async_event *out, struct ib_event *event)
{
	if (out->event == IB_EVENT_CQ_ERR) {
		struct ib_cq *cq = BPF_CORE_READ(event, element.cq);

		tell_owner(out, BPF_CORE_READ(cq, res.task));
		tell_cq(out, cq);
	} else if (is_of_qp(out->event)) {
		tell_qp(out, BPF_CORE_READ(event, element.qp));
	} else if (out->event == IB_EVENT_SRQ_ERR) {
		struct ib_srq *srq = BPF_CORE_READ(event, element.srq);

		tell_owner(out, BPF_CORE_READ(srq, res.task));
	} else if (is_of_port(out->event)) {
		out->port = BPF_CORE_READ(event, element.port_num);
	}
}

static __always_inline void happened(struct ib_event *event)
{
	struct ib_device *device = BPF_CORE_READ(event, device);
	__u32 kind = BPF_CORE_READ(event, event);

	if (is_ordinary(kind))
		return;
	struct async_event *out = bpf_ringbuf_reserve(&async_events, sizeof(*out), 0);
	if (!out) {
		__sync_fetch_and_add(&async_events_lost, 1);
		return;
	}
	__builtin_memset(out, 0, sizeof(*out));
	out->time_ns = bpf_ktime_get_ns();
	out->event = kind;
	bpf_core_read_str(out->device.name, sizeof(out->device.name), &device->name);
	tell_element(out, event);
	bpf_ringbuf_submit(out, BPF_RB_FORCE_WAKEUP);
}

/* The RDMA core's own handler is called for QPs of processes too, before that of
 * user verbs, which is told of the same event. */
static __always_inline void happened_in_kernel(struct ib_event *event)
{
	struct ib_qp *qp = BPF_CORE_READ(event, element.qp);

	if (!BPF_CORE_READ(qp, uobject))
		happened(event);
}
