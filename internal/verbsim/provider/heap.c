/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of the queues with outstanding work, the next completion first. */
#include "sim.h"

uint64_t sim_qp_due(const struct sim_qp *qp)
{
	return qp->hw_next == qp->hw_head ? SIM_NEVER : qp->sq[qp->hw_next & qp->sq_mask].due;
}

static void put(struct sim_device *dev, uint32_t i, struct sim_qp *qp)
{
	dev->heap[i] = qp;
	qp->heap_index = i;
}

static void sift(struct sim_device *dev, uint32_t i)
{
	struct sim_qp *qp = dev->heap[i];
	uint64_t due = sim_qp_due(qp);

	while (i && sim_qp_due(dev->heap[(i - 1) / 2]) > due) {
		put(dev, i, dev->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < dev->heap_len &&
		    sim_qp_due(dev->heap[child + 1]) < sim_qp_due(dev->heap[child]))
			child++;
		if (child >= dev->heap_len || sim_qp_due(dev->heap[child]) >= due)
			break;
		put(dev, i, dev->heap[child]);
		i = child;
	}
	put(dev, i, qp);
}

static void publish(struct sim_device *dev)
{
	uint64_t due = dev->heap_len ? sim_qp_due(dev->heap[0]) : SIM_NEVER;

	atomic_store_explicit(&dev->next_due, due, memory_order_release);
}

void sim_heap_remove(struct sim_qp *qp)
{
	struct sim_device *dev = qp->dev;
	uint32_t i = qp->heap_index;

	if (i == SIM_NO_HEAP)
		return;
	qp->heap_index = SIM_NO_HEAP;
	if (i != --dev->heap_len) {
		put(dev, i, dev->heap[dev->heap_len]);
		sift(dev, i);
	}
	publish(dev);
}

/* Puts the queue where its next completion belongs. */
void sim_heap_update(struct sim_qp *qp)
{
	struct sim_device *dev = qp->dev;

	if (qp->hw_next == qp->hw_head) {
		sim_heap_remove(qp);
		return;
	}
	if (qp->heap_index == SIM_NO_HEAP)
		put(dev, dev->heap_len++, qp);
	sift(dev, qp->heap_index);
	publish(dev);
}
