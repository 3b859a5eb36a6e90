/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port: it moves one message after the other, in the order in which they
 * were rung, in each direction at the programmed rate.
 */
#include "sim.h"

#define PS_PER_NS 1000u

static int inbound(uint32_t opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Picoseconds since the epoch: rounding to nanoseconds would change the rate of small messages. */
uint64_t sim_wire_done(struct sim_device *dev, uint32_t opcode, uint64_t bytes, uint64_t now)
{
	uint64_t *free_ps = inbound(opcode) ? &dev->rx_free_ps : &dev->tx_free_ps;
	uint64_t start = (now - dev->epoch) * PS_PER_NS;
	unsigned __int128 bits = (unsigned __int128)bytes * 8;

	if (!dev->rate_bps)
		return now;
	if (*free_ps > start)
		start = *free_ps;
	*free_ps = start + (uint64_t)(bits * 1000000000000u / dev->rate_bps);
	return dev->epoch + *free_ps / PS_PER_NS;
}
