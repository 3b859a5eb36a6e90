/* SPDX-License-Identifier: Apache-2.0 */
/* Objects without behaviour: protection domains, memory regions, addresses, ports. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ibv_pd *sim_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	(void)context;
	if (!pd)
		errno = ENOMEM;
	return pd;
}

int sim_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

/* ibv_reg_mr fills context, pd, addr and length. */
struct ibv_mr *sim_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access)
{
	struct sim_device *dev = sim_device_of(pd->context);
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));

	(void)addr;
	(void)length;
	(void)hca_va;
	if (!vmr) {
		errno = ENOMEM;
		return NULL;
	}
	vmr->access = access;
	vmr->ibv_mr.lkey = (atomic_fetch_add(&dev->next_key, 1) + 1) << 8;
	vmr->ibv_mr.rkey = vmr->ibv_mr.lkey;
	return &vmr->ibv_mr;
}

int sim_dereg_mr(struct verbs_mr *vmr)
{
	free(vmr);
	return 0;
}

struct ibv_ah *sim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = calloc(1, sizeof(*ah));

	(void)pd;
	(void)attr;
	if (!ah)
		errno = ENOMEM;
	return ah;
}

int sim_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

int sim_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)context;
	if (port != 1)
		return EINVAL;
	/* The caller may know a shorter struct: write the fields of the first ABI only. */
	attr->state = IBV_PORT_ACTIVE;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = IBV_MTU_4096;
	attr->gid_tbl_len = 1;
	attr->max_msg_sz = 1u << 31;
	attr->lid = 1;
	attr->phys_state = 5; /* LinkUp */
	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return 0;
}
