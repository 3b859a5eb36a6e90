/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "types.h"

/* The extended verbs, ibv_qp_ex and ibv_cq_ex: each object holds pointers to
 * functions of its provider. The public part is compiled into applications
 * (infiniband/verbs.h since rdma-core v24; atomic_write came with v44, flush
 * with v45). */

#if defined(__TARGET_ARCH_x86)
#define SIZEOF_IBV_QP 160
#define SIZEOF_IBV_CQ 128
#else
/* pthread_mutex_t is 8 bytes longer there. */
#define SIZEOF_IBV_QP 168
#define SIZEOF_IBV_CQ 136
#endif
#define IBV_QP_EX_WR_ID (SIZEOF_IBV_QP + 8)
#define IBV_QP_EX_FUNCTIONS (SIZEOF_IBV_QP + 24)
#define IBV_CQ_EX_STATUS (SIZEOF_IBV_CQ + 4)
#define IBV_CQ_EX_FUNCTIONS (SIZEOF_IBV_CQ + 16)
#define IBV_CONTEXT_POLL_CQ 96

/* The pointers from wr_atomic_cmp_swp to wr_flush, by their place. */
enum qp_function {
	QP_ATOMIC_CMP_SWP,
	QP_ATOMIC_FETCH_ADD,
	QP_BIND_MW,
	QP_LOCAL_INV,
	QP_RDMA_READ,
	QP_RDMA_WRITE,
	QP_RDMA_WRITE_IMM,
	QP_SEND,
	QP_SEND_IMM,
	QP_SEND_INV,
	QP_SEND_TSO,
	QP_SET_UD_ADDR,
	QP_SET_XRC_SRQN,
	QP_SET_INLINE_DATA,
	QP_SET_INLINE_DATA_LIST,
	QP_SET_SGE,
	QP_SET_SGE_LIST,
	QP_START,
	QP_COMPLETE,
	QP_ABORT,
	QP_ATOMIC_WRITE,
	QP_FLUSH,
	QP_FUNCTIONS,
};

/* Those from start_poll to read_qp_num. */
enum cq_function {
	CQ_START_POLL,
	CQ_NEXT_POLL,
	CQ_END_POLL,
	CQ_READ_OPCODE,
	CQ_READ_VENDOR_ERR,
	CQ_READ_BYTE_LEN,
	CQ_READ_IMM,
	CQ_READ_QP_NUM,
	CQ_FUNCTIONS,
};

enum extended_kind {
	EXTENDED_QP,
	EXTENDED_CQ,
};

/* What a probe stands on; bits 32 to 39 of its cookie. The operation that a
 * builder makes is in bits 40 to 47, the place of the pointer to the function in
 * bits 48 to 55, and how far into the function the probe is in bits 56 to 63. */
enum extended_role {
	ROLE_START,
	ROLE_BUILD,
	ROLE_SET_SGE,
	ROLE_SET_SGE_LIST,
	ROLE_SET_INLINE_DATA,
	ROLE_SET_INLINE_DATA_LIST,
	ROLE_COMPLETE,
	ROLE_ABORT,
	ROLE_NEXT_POLL,
	ROLE_END_POLL,
};
#define COOKIE_ROLE(cookie) ((__u32)((cookie) >> 32) & 0xff)
#define COOKIE_OPERATION(cookie) ((__u8)((cookie) >> 40))
#define COOKIE_POINTER(cookie) ((__u32)((cookie) >> 48) & 0xff)
#define COOKIE_INTO(cookie) ((__u32)((cookie) >> 56))

/* One combination of functions, as objects of a process have it. The digest is
 * over all but wr_complete, which providers exchange at run time. */
struct extended_key {
	__u64 incarnation;
	__u64 digest;
	__u32 tgid;
	__u32 kind;
};
_Static_assert(sizeof(struct extended_key) == 24, "hashed as bytes");

enum extended_refusal {
	REFUSED_NOT,
	REFUSED_NO_OBJECT, /* the pointers are no functions of a provider: another kind of object */
	REFUSED_PROBES,	   /* they are, and are not probed */
};

#define READER_STEPS 4

/* What a function that reads a member of the current completion does: a number
 * at the end of a chain of pointers that begins at the ibv_cq_ex. */
struct extended_reader {
	__s32 offsets[READER_STEPS];
	__u32 steps; /* 0: what it does is not known */
	__u32 size;  /* of the number: 1, 2, 4 or 8 bytes */
	__u32 swap;  /* it is big-endian */
	__u32 shift; /* to the right, then masked */
	__u64 mask;
};

struct extended_set {
	__u64 pointers[QP_FUNCTIONS];
	/* Set by user space. */
	__u64 attached_ns; /* when the last of the functions was probed, 0: not yet */
	__u32 refused;	   /* enum extended_refusal */
	__u32 library;
	struct extended_reader qp_num, opcode, byte_len, vendor_err;
	/* Where the device says which queue a completion is of: a number, the
	 * index of a bit in one of the two. */
	struct extended_reader direction;
	__u32 sends, receives;
};

/* Between start_poll and end_poll. */
struct extended_cq {
	__u64 instruction, stack, ns; /* of the last probe, to know its double */
	__u64 since;		      /* when its library began to be observed */
	__u32 library;
	__u32 first_delivered;
};

/* A request of an ibv_qp_ex that is being built. */
struct built {
	__u64 wr_id;
	__u32 bytes;
	__u32 lkey; /* of its first memory, 0: none */
	__u8 operation;
	__u8 flags;
	__u8 pad[6];
};
_Static_assert(sizeof(struct built) == 24, "three words");

/* The longest chain between wr_start and wr_complete. */
#define BUILT_MAX 256
