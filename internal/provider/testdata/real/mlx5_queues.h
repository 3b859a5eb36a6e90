/* SPDX-License-Identifier: Apache-2.0 */
/* What mlx5.c, the objects, and mlx5_entries.c, the entries of CQs, share. */
#ifndef MLX5_QUEUES_H
#define MLX5_QUEUES_H

#include "driver.h"

#include <infiniband/mlx5dv.h>

enum { QPS = 2 * CQS };

struct owner {
	void *qp, *srq;
	uint32_t qpn, uidx, srqn;
	uint32_t sent, received;
};

extern struct owner owners[QPS];
/* The entries put into each CQ. */
extern uint32_t produced[CQS];
extern struct queues made;

/* The size of a CQ's entries. */
int size_of(int cq);

#endif
