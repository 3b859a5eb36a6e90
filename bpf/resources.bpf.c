//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* The control path and the asynchronous events of all providers, on functions
 * of the kernel's RDMA core. An object of its own: it is loaded when the modules
 * ib_core and ib_uverbs are, and what it needs of their types may be missing. */

#include "kernel.h"

#include "resource_event.h"
#include "resource_qp.h"

char __license[] SEC("license") = "Dual BSD/GPL";

const struct async_event *type_async_event __attribute__((unused));

/* struct ib_qp *ib_create_qp_user(device, pd, attributes, …) */
SEC("kprobe/ib_create_qp_user")
int enter_create_user(struct pt_regs *ctx)
{
	creation_entered(ARG3(ctx));
	return 0;
}

/* struct ib_qp *ib_create_qp_kernel(pd, attributes, …) */
SEC("kprobe/ib_create_qp_kernel")
int enter_create_kernel(struct pt_regs *ctx)
{
	creation_entered(ARG2(ctx));
	return 0;
}

/* void rdma_restrack_add(entry) */
SEC("kprobe/rdma_restrack_add")
int enter_restrack_add(struct pt_regs *ctx)
{
	listed((void *)ARG1(ctx));
	return 0;
}

/* int ib_modify_qp_with_udata(qp, attributes, mask, …) and int ib_modify_qp(qp,
 * attributes, mask), of which neither calls the other. */
SEC("kprobe/ib_modify_qp")
int enter_modify(struct pt_regs *ctx)
{
	modification_entered(ARG1(ctx), ARG2(ctx), ARG3(ctx));
	return 0;
}

SEC("kretprobe/ib_modify_qp")
int leave_modify(struct pt_regs *ctx)
{
	modification_returned(RET(ctx));
	return 0;
}

/* int ib_query_qp(qp, attributes, …) */
SEC("kprobe/ib_query_qp")
int enter_query(struct pt_regs *ctx)
{
	query_entered(ARG1(ctx), ARG2(ctx));
	return 0;
}

SEC("kretprobe/ib_query_qp")
int leave_query(struct pt_regs *ctx)
{
	query_returned(RET(ctx));
	return 0;
}

/* int ib_destroy_qp_user(qp, …), which destroys those of the kernel too. */
SEC("kprobe/ib_destroy_qp_user")
int enter_destroy(struct pt_regs *ctx)
{
	destruction_entered((void *)ARG1(ctx));
	return 0;
}

/* void ib_dispatch_event(event): devices and ports. */
SEC("kprobe/ib_dispatch_event")
int enter_dispatch_event(struct pt_regs *ctx)
{
	happened((void *)ARG1(ctx));
	return 0;
}

/* void ib_uverbs_{qp,cq,srq,wq}_event_handler(event, context): what processes own. */
SEC("kprobe/ib_uverbs_event_handler")
int enter_user_event(struct pt_regs *ctx)
{
	happened((void *)ARG1(ctx));
	return 0;
}

/* void __ib_qp_event_handler(event, context), since Linux 6.12: QPs of all
 * consumers. */
SEC("kprobe/__ib_qp_event_handler")
int enter_qp_event(struct pt_regs *ctx)
{
	happened_in_kernel((void *)ARG1(ctx));
	return 0;
}
