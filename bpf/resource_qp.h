/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "libbpf/bpf_core_read.h"
#include "maps/core_calls.h"
#include "maps/kernel_devices.h"
#include "maps/kernel_qps.h"
#include "rdma_core.h"
#include "resource_handle.h"
#include "resource_queue.h"

/* Losses, read by user space; these paths are too rare for per-CPU counters. */
volatile __u64 kernel_qps_full = 0;
volatile __u64 core_calls_lost = 0;

/* How many QPs were taken up so far: user space looks at them when it changed. */
volatile __u64 kernel_qps_taken = 0;

static __always_inline struct kernel_cq read_cq(struct ib_cq *cq)
{
	struct kernel_cq facts = {};

	if (!cq)
		return facts;
	facts.user_handle = user_handle_of(BPF_CORE_READ(cq, uobject));
	facts.number = BPF_CORE_READ(cq, res.id);
	facts.cqe = BPF_CORE_READ(cq, cqe);
	return facts;
}

static __always_inline struct kernel_qp_key key_of(struct ib_qp *qp)
{
	struct kernel_qp_key key = {
		.device = BPF_CORE_READ(qp, device, index),
		.qp_num = BPF_CORE_READ(qp, qp_num),
	};
	return key;
}

static __always_inline void name_device(struct ib_device *device, __u32 index)
{
	struct device_label label = {};

	if (bpf_core_read_str(label.name, sizeof(label.name), &device->name) > 1)
		bpf_map_update_elem(&kernel_devices, &index, &label, BPF_ANY);
}

/* Takes up a QP, and all that is in it at this moment. A number that is known
 * already belonged to a QP that is gone. */
static __always_inline void take_up(struct kernel_qp_key *key, struct ib_qp *qp,
				    struct ib_qp_init_attr *attr)
{
	struct task_struct *task = BPF_CORE_READ(qp, res.task);
	struct kernel_qp facts = {
		.user_handle = user_handle_of(BPF_CORE_READ(qp, uobject)),
		.send_cq = read_cq(BPF_CORE_READ(qp, send_cq)),
		.recv_cq = read_cq(BPF_CORE_READ(qp, recv_cq)),
		.type = BPF_CORE_READ(qp, qp_type),
		.port = BPF_CORE_READ(qp, port),
	};

	if (task) {
		facts.tgid = BPF_CORE_READ(task, tgid);
		facts.incarnation = incarnation_of(task);
	}
	if (attr) {
		facts.max_send_wr = BPF_CORE_READ(attr, cap.max_send_wr);
		facts.max_recv_wr = BPF_CORE_READ(attr, cap.max_recv_wr);
		facts.signals_all = BPF_CORE_READ(attr, sq_sig_type) == IB_SIGNAL_ALL_WR;
		facts.known = QP_KNOWS_CREATION;
	}
	name_device(BPF_CORE_READ(qp, device), key->device);
	if (bpf_map_update_elem(&kernel_qps, key, &facts, BPF_ANY))
		__sync_fetch_and_add(&kernel_qps_full, 1);
	else
		__sync_fetch_and_add(&kernel_qps_taken, 1);
}

static __always_inline struct core_call *call_of_thread(void)
{
	__u64 thread = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&core_calls, &thread);
}

/* Keeps what a thread asks for until its success is known. A modification that
 * is still there did not return, as far as was seen: return probes are bounded.
 * (A GSI QP of mlx5 modifies another one within; that counts here as well.) */
static __always_inline void keep_call(struct core_call *call)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct core_call *before = bpf_map_lookup_elem(&core_calls, &thread);

	if (before && before->modify_qp)
		__sync_fetch_and_add(&core_calls_lost, 1);
	if (bpf_map_update_elem(&core_calls, &thread, call, BPF_ANY))
		__sync_fetch_and_add(&core_calls_lost, 1);
}

static __always_inline void forget_call(void)
{
	__u64 thread = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&core_calls, &thread);
}

static __always_inline void creation_entered(__u64 attr)
{
	struct core_call call = { .create_attr = attr };

	keep_call(&call);
}

/* The RDMA core lists a new QP once the driver has made it. */
static __always_inline void listed(struct ib_qp *qp)
{
	struct kernel_qp_key key = key_of(qp);
	struct core_call *call = call_of_thread();

	take_up(&key, qp, call ? (void *)call->create_attr : NULL);
	if (call)
		forget_call();
}

static __always_inline void modification_entered(__u64 qp, __u64 attr, __u64 mask)
{
	struct core_call call = { .modify_qp = qp, .modify_attr = attr, .modify_mask = mask };

	keep_call(&call);
}

static __always_inline void learn_path(struct kernel_qp *facts, struct ib_qp *qp,
				       struct ib_qp_attr *attr)
{
	const struct ib_gid_attr *local = BPF_CORE_READ(qp, av_sgid_attr);

	facts->known |= QP_KNOWS_VECTOR;
	facts->service_level = BPF_CORE_READ(attr, ah_attr.sl);
	facts->traffic_class = 0;
	facts->remote_lid = 0;
	facts->known &= ~QP_KNOWS_REMOTE_GID;
	if (BPF_CORE_READ(attr, ah_attr.type) == RDMA_AH_ATTR_TYPE_IB)
		facts->remote_lid = BPF_CORE_READ(attr, ah_attr.ib.dlid);
	if (!(BPF_CORE_READ(attr, ah_attr.ah_flags) & IB_AH_GRH))
		return;
	facts->known |= QP_KNOWS_REMOTE_GID;
	facts->traffic_class = BPF_CORE_READ(attr, ah_attr.grh.traffic_class);
	bpf_core_read(facts->remote_gid, sizeof(facts->remote_gid), &attr->ah_attr.grh.dgid);
	if (!local)
		return;
	facts->gid_type = BPF_CORE_READ(local, gid_type);
	bpf_core_read(facts->local_gid, sizeof(facts->local_gid), &local->gid);
}

static __always_inline void learn(struct kernel_qp *facts, struct ib_qp *qp,
				  struct ib_qp_attr *attr, __u32 mask)
{
	if (mask & IB_QP_STATE) {
		facts->state = BPF_CORE_READ(attr, qp_state);
		facts->known |= QP_KNOWS_STATE;
	}
	if (mask & IB_QP_PORT)
		facts->port = BPF_CORE_READ(qp, port);
	if (mask & IB_QP_AV)
		learn_path(facts, qp, attr);
	if (mask & IB_QP_PATH_MTU)
		facts->path_mtu = BPF_CORE_READ(attr, path_mtu);
	if (mask & IB_QP_DEST_QPN)
		facts->remote_qp = BPF_CORE_READ(attr, dest_qp_num) & 0xffffff;
	if (mask & IB_QP_TIMEOUT) {
		facts->timeout = BPF_CORE_READ(attr, timeout);
		facts->known |= QP_KNOWS_TIMEOUT;
	}
	if (mask & IB_QP_RETRY_CNT) {
		facts->retry_cnt = BPF_CORE_READ(attr, retry_cnt);
		facts->known |= QP_KNOWS_RETRY;
	}
	if (mask & IB_QP_RNR_RETRY) {
		facts->rnr_retry = BPF_CORE_READ(attr, rnr_retry);
		facts->known |= QP_KNOWS_RNR_RETRY;
	}
	if (mask & IB_QP_MIN_RNR_TIMER) {
		facts->min_rnr_timer = BPF_CORE_READ(attr, min_rnr_timer);
		facts->known |= QP_KNOWS_MIN_RNR_TIMER;
	}
}

/* The attributes outlive the call: they are its caller's. */
static __always_inline void modification_returned(int error)
{
	struct core_call *kept = call_of_thread();

	if (!kept || !kept->modify_qp)
		return;
	struct core_call call = *kept;
	forget_call();
	if (error)
		return;
	struct ib_qp *qp = (void *)call.modify_qp;
	struct ib_qp *shared = BPF_CORE_READ(qp, real_qp);
	if (shared)
		qp = shared; /* XRC: what several processes opened */
	struct kernel_qp_key key = key_of(qp);
	struct kernel_qp *facts = bpf_map_lookup_elem(&kernel_qps, &key);

	if (!facts || facts->ended_ns) {
		take_up(&key, qp, NULL);
		facts = bpf_map_lookup_elem(&kernel_qps, &key);
	}
	if (!facts)
		return;
	learn(facts, qp, (void *)call.modify_attr, call.modify_mask);
	if (call.modify_mask & IB_QP_STATE)
		state_reached(qp, facts);
}

static __always_inline void query_entered(__u64 qp, __u64 attr)
{
	struct core_call call = { .query_qp = qp, .query_attr = attr };

	keep_call(&call);
}

/* What of the attributes of a queried QP is to be believed. The caller's memory
 * holds anything before, and drivers fill in what they have, whatever they were
 * asked for: for connected QPs of InfiniBand and RoCE that is what connected
 * them. */
static __always_inline __u32 trusted(struct ib_qp *qp, struct ib_qp_attr *attr)
{
	__u32 type = BPF_CORE_READ(qp, qp_type);
	__u32 state = BPF_CORE_READ(attr, qp_state);
	__u32 kind = BPF_CORE_READ(attr, ah_attr.type);
	const struct ib_gid_attr *local = BPF_CORE_READ(qp, av_sgid_attr);

	if (type != IB_QPT_RC && type != IB_QPT_UC)
		return 0;
	if (BPF_CORE_READ(qp, device, node_type) == RDMA_NODE_RNIC)
		return 0;
	if (state < IB_QPS_RTR || state > IB_QPS_SQE)
		return 0;
	if (kind != RDMA_AH_ATTR_TYPE_IB && (kind != RDMA_AH_ATTR_TYPE_ROCE || !local))
		return 0;
	return IB_QP_STATE | IB_QP_PORT | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
	       (type == IB_QPT_RC ? IB_QP_MIN_RNR_TIMER : 0) |
	       (type == IB_QPT_RC && state >= IB_QPS_RTS
			? IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY
			: 0);
}

/* A QP that somebody asks about may have been there before the probes. Listing
 * the QPs ("rdma resource show qp") asks about every one. */
static __always_inline void query_returned(int error)
{
	struct core_call *kept = call_of_thread();

	if (!kept || !kept->query_qp)
		return;
	struct core_call call = *kept;
	forget_call();
	if (error)
		return;
	struct ib_qp *qp = (void *)call.query_qp;
	struct ib_qp_attr *attr = (void *)call.query_attr;
	struct kernel_qp_key key = key_of(qp);
	struct kernel_qp *facts = bpf_map_lookup_elem(&kernel_qps, &key);

	if (facts && !facts->ended_ns)
		return;
	take_up(&key, qp, NULL);
	facts = bpf_map_lookup_elem(&kernel_qps, &key);
	if (facts)
		learn(facts, qp, attr, trusted(qp, attr));
}

static __always_inline void destruction_entered(struct ib_qp *qp)
{
	struct kernel_qp_key key = key_of(qp);
	struct kernel_qp *facts = bpf_map_lookup_elem(&kernel_qps, &key);

	if (BPF_CORE_READ(qp, real_qp) != qp)
		return;
	if (facts)
		facts->ended_ns = bpf_ktime_get_ns();
	end_linked(qp, END_DESTROY);
}
