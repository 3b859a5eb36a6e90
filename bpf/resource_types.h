/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"

/* What the kernel's RDMA core knows of QPs, and tells of devices, in the form
 * that user space reads. Padding is spelled out. */

#define DEVICE_NAME 64

struct device_label {
	char name[DEVICE_NAME];
};

/* A QP number is unique on its device while the QP lives. */
struct kernel_qp_key {
	__u32 device; /* index of the kernel's ib_device */
	__u32 qp_num;
};
_Static_assert(sizeof(struct kernel_qp_key) == 8, "hashed as bytes");

/* Which members of kernel_qp were seen to be set; a value of 0 is not always
 * "unknown". */
#define QP_KNOWS_CREATION (1 << 0)
#define QP_KNOWS_VECTOR (1 << 1)
#define QP_KNOWS_REMOTE_GID (1 << 2)
#define QP_KNOWS_RETRY (1 << 3)
#define QP_KNOWS_RNR_RETRY (1 << 4)
#define QP_KNOWS_TIMEOUT (1 << 5)
#define QP_KNOWS_MIN_RNR_TIMER (1 << 6)
#define QP_KNOWS_STATE (1 << 7)

struct kernel_cq {
	__u64 user_handle; /* address of the ibv_cq in the process, 0 for a CQ of the kernel */
	__u32 number;	   /* what "rdma resource show cq" prints */
	__u32 cqe;
};

struct kernel_qp {
	__u64 incarnation; /* of the process that made it, 0: the kernel */
	__u64 user_handle; /* address of the ibv_qp in the process */
	__u64 ended_ns;	   /* 0 while it lives */
	struct kernel_cq send_cq, recv_cq;
	__u8 local_gid[16], remote_gid[16];
	__u32 tgid;
	__u32 known;
	__u32 max_send_wr, max_recv_wr;
	__u32 remote_qp;
	__u16 remote_lid; /* 0: not known */
	__u8 gid_type;
	__u8 type;
	__u8 port; /* 0: not known */
	__u8 state;
	__u8 path_mtu; /* enum ib_mtu, 0: not known */
	__u8 timeout, retry_cnt, rnr_retry, min_rnr_timer;
	__u8 service_level, traffic_class;
	__u8 signals_all;
	__u8 pad[6];
};
_Static_assert(sizeof(struct kernel_qp) == 128, "no hidden padding");

/* A call into the RDMA core between its entry and what tells of its success. */
struct core_call {
	__u64 create_attr;
	__u64 modify_qp;
	__u64 modify_attr;
	__u64 modify_mask;
	__u64 query_qp;
	__u64 query_attr;
};

/* Where registered memory is. */
enum memory_kind {
	MEMORY_UNKNOWN, /* it was registered before the probes */
	MEMORY_HOST,
	MEMORY_DMABUF, /* another driver's, by a file descriptor of it */
	MEMORY_PEER,   /* another driver's, by its address: nvidia-peermem and its like */
	MEMORY_DEVICE, /* the RDMA device's own */
};

/* A key is unique on its device while the region lives. */
struct region_key {
	__u32 device; /* index of the kernel's ib_device */
	__u32 lkey;
};
_Static_assert(sizeof(struct region_key) == 8, "hashed as bytes");

#define GPU_UUID 16
#define EXPORTER_NAME 16

/* A memory region of a process. */
struct region {
	__u64 incarnation; /* of the process that registered it */
	__u64 since_ns;	   /* when it was registered, or seen for the first time */
	__u64 ended_ns;	   /* 0 while it lives */
	__u64 bytes;
	__u8 gpu[GPU_UUID];	      /* of an NVIDIA GPU; zeros: not known */
	char exporter[EXPORTER_NAME]; /* of a dma-buf; "": not known */
	__u32 tgid;
	__u32 kind;
};
_Static_assert(sizeof(struct region) == 72, "no hidden padding");

struct registrations_key {
	__u64 incarnation;
	__u32 tgid;
	__u32 device; /* index of the kernel's ib_device */
	__u32 kind;
	__u32 error; /* errno of those that failed, 0 */
};
_Static_assert(sizeof(struct registrations_key) == 24, "hashed as bytes");

/* What a process registered. */
struct registrations {
	__u64 count, bytes, time_ns;
	__u64 ended, ended_time_ns;  /* deregistrations */
	__u64 regions, region_bytes; /* of regions that live now */
};

/* A registration or a deregistration between its entry and its return. */
struct region_call {
	__u64 entered_ns;
	__u64 bundle;	 /* the attributes of the user's request, 0: a deregistration */
	__u64 since_ns;	 /* of the region, 0: none was made yet */
	__u64 bytes;	 /* of a dma-buf */
	__u64 gpu_pages; /* where NVIDIA's driver is about to put its page table */
	struct region_key key;
	__u8 gpu[GPU_UUID];
	char exporter[EXPORTER_NAME];
	__u32 kind;
	__u32 pad;
};

struct async_event {
	__u64 time_ns;
	__u64 incarnation;
	__u32 tgid;  /* 0: of no process */
	__u32 event; /* enum ib_event_type */
	__u32 qp_num;
	__u32 cq_number;
	__u32 port;
	__u8 has_qp, has_cq;
	__u8 pad[2];
	struct device_label device;
};
_Static_assert(sizeof(struct async_event) == 104, "no tail padding");
