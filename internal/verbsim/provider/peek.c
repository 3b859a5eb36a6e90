/* SPDX-License-Identifier: Apache-2.0 */
/* Reading memory that may not be there, without a fault. */
#define _GNU_SOURCE
#include "sim.h"

#include <sys/uio.h>
#include <unistd.h>

/* 0, or -1 when a byte of [from, from+len) cannot be read. */
int sim_peek(void *to, const void *from, size_t len)
{
	struct iovec local = { to, len };
	struct iovec remote = { (void *)(uintptr_t)from, len };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -1;
}

static const struct ibv_send_wr *next_of(const struct ibv_send_wr *wr)
{
	struct ibv_send_wr copy;

	return wr && !sim_peek(&copy, wr, sizeof(copy)) ? copy.next : NULL;
}

/* Floyd's: the fast walker meets the slow one only on a cycle. */
int sim_send_list_is_cyclic(const struct ibv_send_wr *wr)
{
	const struct ibv_send_wr *slow = wr, *fast = wr;

	do {
		slow = next_of(slow);
		fast = next_of(next_of(fast));
	} while (fast && fast != slow);
	return fast != NULL;
}
