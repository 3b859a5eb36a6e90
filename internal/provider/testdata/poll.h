/* SPDX-License-Identifier: Apache-2.0 */
/* What poll.c and poll_driver.c share. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct wc {
	uint64_t wr_id;
	uint32_t status, opcode, vendor_err, byte_len, imm, qp_num, src_qp, wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
};
_Static_assert(sizeof(struct wc) == 48, "struct ibv_wc");

enum kind { SEND, RECV, IMM, ERROR, SKIP, FATAL, FLUSH };

struct cqe {
	uint64_t id;
	uint32_t qp, length, kind, extra;
};

struct qp {
	uint32_t number, type;
	uint64_t ids[64];
};

struct cq {
	uint64_t pad[7];
	pthread_spinlock_t lock;
	uint32_t head, tail, mask, doorbell;
	struct cqe *ring;
	struct qp *qps;
	struct cq *flush;
	uint32_t shift;
};

#define POLL_FUNCTIONS(X) X(inline) X(copy) X(skip) X(called) X(sum) X(turns) X(down)
#define POLL_DECLARE(name) int poll_##name(struct cq *cq, int ne, struct wc *wc);
POLL_FUNCTIONS(POLL_DECLARE)
