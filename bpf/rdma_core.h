/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"

/* The structures of the kernel's RDMA core (include/rdma/ib_verbs.h and
 * restrack.h) that the programs read, relocated to where the modules that are
 * loaded have them. */

/* Enumerations have their kernel's names: the loader takes no integer in place of
 * one. */
enum rdma_restrack_type {
	RDMA_RESTRACK_QP = 2,
	RDMA_RESTRACK_MR = 4,
};

enum ib_mr_type {
	IB_MR_TYPE_DM = 2,
	IB_MR_TYPE_USER = 3,
};

enum rdma_ah_attr_type {
	RDMA_AH_ATTR_TYPE_IB = 1,
	RDMA_AH_ATTR_TYPE_ROCE = 2,
};

enum ib_sig_type {
	IB_SIGNAL_ALL_WR,
};

enum ib_gid_type {
	IB_GID_TYPE_IB,
};

enum ib_qp_type {
	IB_QPT_SMI = 0,
	IB_QPT_GSI = 1,
	IB_QPT_RC = 2,
	IB_QPT_UC = 3,
	IB_QPT_RESERVED1 = 0x1000, /* from here on the drivers' own */
};

enum ib_wr_opcode {
	IB_WR_RDMA_WRITE = 0,
	IB_WR_RDMA_READ_WITH_INV = 11,
	IB_WR_MASKED_ATOMIC_CMP_AND_SWP = 12,
	IB_WR_MASKED_ATOMIC_FETCH_AND_ADD = 13,
	IB_WR_REG_MR = 0x20,
	IB_WR_REG_MR_INTEGRITY = 0x21,
};

enum ib_wc_status {
	IB_WC_SUCCESS,
};

enum ib_wc_opcode {
	IB_WC_SEND,
};

enum ib_qp_state {
	IB_QPS_RESET = 0,
	IB_QPS_RTR = 2,
	IB_QPS_RTS = 3,
	IB_QPS_SQE = 5,
};

enum ib_mtu {
	IB_MTU_256 = 1,
};

enum ib_event_type {
	IB_EVENT_CQ_ERR = 0,
	IB_EVENT_QP_FATAL = 1,
	IB_EVENT_QP_REQ_ERR = 2,
	IB_EVENT_QP_ACCESS_ERR = 3,
	IB_EVENT_COMM_EST = 4,
	IB_EVENT_SQ_DRAINED = 5,
	IB_EVENT_PATH_MIG = 6,
	IB_EVENT_PATH_MIG_ERR = 7,
	IB_EVENT_DEVICE_FATAL = 8,
	IB_EVENT_SRQ_ERR = 14,
	IB_EVENT_SRQ_LIMIT_REACHED = 15,
	IB_EVENT_QP_LAST_WQE_REACHED = 16,
	IB_EVENT_WQ_FATAL = 19,
};

#define IB_AH_GRH 1
#define RDMA_NODE_RNIC 4 /* iWARP */

/* enum ib_qp_attr_mask. */
#define IB_QP_STATE (1 << 0)
#define IB_QP_PORT (1 << 5)
#define IB_QP_AV (1 << 7)
#define IB_QP_PATH_MTU (1 << 8)
#define IB_QP_TIMEOUT (1 << 9)
#define IB_QP_RETRY_CNT (1 << 10)
#define IB_QP_RNR_RETRY (1 << 11)
#define IB_QP_MIN_RNR_TIMER (1 << 15)
#define IB_QP_DEST_QPN (1 << 20)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

union ib_gid {
	__u8 raw[16];
};

struct ib_device_ops {
	void *post_send;
	void *post_recv;
	void *poll_cq;
	void *post_srq_recv;
};

struct ib_device {
	struct ib_device_ops ops;
	char name[64];
	__u8 node_type;
	__u32 index;
};

struct rdma_restrack_entry {
	struct task_struct *task; /* NULL: a consumer in the kernel */
	const char *kern_name;	  /* the module of a consumer in the kernel */
	enum rdma_restrack_type type;
	__u32 id; /* what "rdma resource" prints */
};

struct ib_gid_attr {
	union ib_gid gid;
	enum ib_gid_type gid_type;
};

struct ib_cq {
	struct ib_device *device;
	void *uobject;
	int cqe;
	struct rdma_restrack_entry res;
};

struct ib_pd {
	struct rdma_restrack_entry res;
};

struct ib_srq {
	struct ib_device *device;
	struct ib_pd *pd;
	void *uobject;
	struct rdma_restrack_entry res;
};

struct ib_qp {
	struct ib_device *device;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_pd *pd;
	struct ib_srq *srq;
	struct ib_qp *real_qp;
	void *uobject;
	const struct ib_gid_attr *av_sgid_attr;
	__u32 qp_num;
	enum ib_qp_type qp_type;
	__u32 port;
	struct rdma_restrack_entry res;
};

struct ib_mr {
	struct ib_device *device;
	__u32 lkey;
	__u64 length;
	enum ib_mr_type type;
	struct rdma_restrack_entry res;
};

struct ib_umem {
	unsigned long length;
};

struct ib_ucontext {
	struct ib_device *device;
};

struct ib_uverbs_file {
	struct ib_ucontext *ucontext;
};

struct uverbs_attr_bundle {
	struct ib_uverbs_file *ufile;
};

struct dma_buf {
	const char *exp_name;
};

struct ib_qp_cap {
	__u32 max_send_wr;
	__u32 max_recv_wr;
};

struct ib_qp_init_attr {
	struct ib_qp_cap cap;
	enum ib_sig_type sq_sig_type;
};

struct ib_global_route {
	union ib_gid dgid;
	__u8 traffic_class;
};

struct ib_ah_attr {
	__u16 dlid;
};

struct rdma_ah_attr {
	struct ib_global_route grh;
	__u8 sl;
	__u8 ah_flags;
	enum rdma_ah_attr_type type;
	struct ib_ah_attr ib;
};

struct ib_qp_attr {
	enum ib_qp_state qp_state;
	enum ib_mtu path_mtu;
	__u32 dest_qp_num;
	struct rdma_ah_attr ah_attr;
	__u8 min_rnr_timer;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
};

struct ib_cqe {
	void *done;
};

struct ib_send_wr {
	struct ib_send_wr *next;
	__u64 wr_id;
	void *sg_list;
	int num_sge;
	enum ib_wr_opcode opcode;
	int send_flags;
};

struct ib_wc {
	__u64 wr_id;
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	__u32 vendor_err;
	__u32 byte_len;
	struct ib_qp *qp;
};

struct ib_event {
	struct ib_device *device;
	union {
		struct ib_cq *cq;
		struct ib_qp *qp;
		struct ib_srq *srq;
		__u32 port_num;
	} element;
	enum ib_event_type event;
};

#pragma clang attribute pop
