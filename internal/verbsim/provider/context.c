/* SPDX-License-Identifier: Apache-2.0 */
/* The context and its table of functions, handed over as every provider does. */
#include "sim.h"

#include <stdlib.h>

static void sim_free_context(struct ibv_context *context)
{
	struct verbs_context *vctx = verbs_get_ctx(context);

	verbs_uninit_context(vctx);
	free(vctx);
}

static const struct verbs_context_ops sim_context_ops = {
	.alloc_pd = sim_alloc_pd,
	.create_ah = sim_create_ah,
	.create_cq = sim_create_cq,
	.create_cq_ex = sim_create_cq_ex,
	.create_qp = sim_create_qp,
	.create_qp_ex = sim_create_qp_ex,
	.create_srq = sim_create_srq,
	.dealloc_pd = sim_dealloc_pd,
	.dereg_mr = sim_dereg_mr,
	.destroy_ah = sim_destroy_ah,
	.destroy_cq = sim_destroy_cq,
	.destroy_qp = sim_destroy_qp,
	.destroy_srq = sim_destroy_srq,
	.free_context = sim_free_context,
	.modify_qp = sim_modify_qp,
	.poll_cq = sim_poll_cq,
	.post_recv = sim_post_recv,
	.post_send = sim_post_send,
	.post_srq_recv = sim_post_srq_recv,
	.query_port = sim_query_port,
	.query_qp = sim_query_qp,
	.reg_mr = sim_reg_mr,
	.req_notify_cq = sim_req_notify_cq,
};

struct verbs_context *sim_alloc_context(struct ibv_device *device, int cmd_fd, void *private_data)
{
	struct sim_context *context;

	(void)private_data;
	context = _verbs_init_and_alloc_context(device, cmd_fd, sizeof(*context),
						&((struct sim_context *)NULL)->ibv_ctx,
						0 /* RDMA_DRIVER_UNKNOWN */);
	if (!context)
		return NULL;
	verbs_set_ops(&context->ibv_ctx, &sim_context_ops);
	return &context->ibv_ctx;
}
