/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"

/* The user-space verbs ABI as libibverbs has kept it since rdma-core v15
 * (infiniband/verbs.h): these structures are compiled into applications. Only
 * the leading members that are read are declared; each is read from the
 * traced process in one copy. 64-bit processes only. */

struct ibv_qp_head {
	__u64 context;
	__u64 qp_context;
	__u64 pd;
	__u64 send_cq;
	__u64 recv_cq;
	__u64 srq;
	__u32 handle;
	__u32 qp_num;
	__u32 state;
	__u32 qp_type;
};
_Static_assert(sizeof(struct ibv_qp_head) == 64, "struct ibv_qp up to qp_type");

struct ibv_send_wr_head {
	__u64 wr_id;
	__u64 next;
	__u64 sg_list;
	__u32 num_sge;
	__u32 opcode;
	__u32 send_flags;
	__u32 imm_data;
};
_Static_assert(sizeof(struct ibv_send_wr_head) == 40, "struct ibv_send_wr up to imm_data");

struct ibv_sge {
	__u64 addr;
	__u32 length;
	__u32 lkey;
};
_Static_assert(sizeof(struct ibv_sge) == 16, "struct ibv_sge");

struct ibv_wc {
	__u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 vendor_err;
	__u32 byte_len;
	__u32 imm_data;
	__u32 qp_num;
	__u32 src_qp;
	__u32 wc_flags;
	__u16 pkey_index;
	__u16 slid;
	__u8 sl;
	__u8 dlid_path_bits;
	__u16 pad;
};
_Static_assert(sizeof(struct ibv_wc) == 48, "struct ibv_wc");

/* Offsets inside structures that are not copied whole. */
#define IBV_WR_NEXT 8 /* of ibv_send_wr and ibv_recv_wr alike */
#define IBV_CQ_CONTEXT 0
#define IBV_SRQ_CONTEXT 0
#define IBV_CONTEXT_DEVICE 0
#define IBV_DEVICE_NAME 24
#define IBV_DEVICE_NAME_LEN 64
#define IBV_QP_ATTR_STATE 0
#define IBV_QP_ATTR_DEST_QP 28
#define IBV_QP_ATTR_PORT 129
#define IBV_QP_INIT_MAX_SEND_WR 32
#define IBV_QP_INIT_TYPE 52
#define IBV_QP_INIT_SIG_ALL 56

/* enum ibv_qp_attr_mask. */
#define IBV_QP_MASK_STATE (1u << 0)
#define IBV_QP_MASK_PORT (1u << 5)
#define IBV_QP_MASK_DEST_QPN (1u << 20)

/* enum ibv_qp_state. */
#define IBV_QPS_RESET 0
#define IBV_QPS_INIT 1
#define IBV_QPS_RTR 2
#define IBV_QPS_RTS 3

#define IBV_SEND_SIGNALED (1u << 1)
#define IBV_SEND_INLINE (1u << 3)
#define IBV_WC_SUCCESS 0
#define IBV_WC_WR_FLUSH_ERR 5
#define IBV_WC_RECV (1u << 7)
#define IBV_WC_DRIVER1 135 /* from here on no receives */
#define IBV_STATUSES 24
