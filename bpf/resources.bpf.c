//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* The control path and the asynchronous events of all providers, on functions
 * of the kernel's RDMA core. An object of its own: it is loaded when the modules
 * ib_core and ib_uverbs are, and what it needs of their types may be missing. */

#include "kernel.h"

#include "resource_event.h"
#include "resource_mr.h"
#include "resource_peer.h"
#include "resource_qp.h"

char __license[] SEC("license") = "Dual BSD/GPL";

const struct async_event *type_async_event __attribute__((unused));
const enum memory_kind *type_memory_kind __attribute__((unused));

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
	struct rdma_restrack_entry *entry = (void *)ARG1(ctx);

	switch (BPF_CORE_READ(entry, type)) {
	case RDMA_RESTRACK_QP:
		listed((void *)entry - bpf_core_field_offset(struct ib_qp, res));
		break;
	case RDMA_RESTRACK_MR:
		region_listed((void *)entry - bpf_core_field_offset(struct ib_mr, res));
		break;
	}
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

/* int ib_uverbs_reg_mr(bundle) and the methods REG_MR, DM_MR_REG and REG_DMABUF_MR:
 * what a process asks for. */
SEC("kprobe/ib_uverbs_reg_mr")
int enter_register(struct pt_regs *ctx)
{
	registration_entered(ARG1(ctx), MEMORY_HOST);
	return 0;
}

SEC("kprobe/ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG")
int enter_register_device(struct pt_regs *ctx)
{
	registration_entered(ARG1(ctx), MEMORY_DEVICE);
	return 0;
}

SEC("kprobe/ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR")
int enter_register_dmabuf(struct pt_regs *ctx)
{
	registration_entered(ARG1(ctx), MEMORY_DMABUF);
	return 0;
}

SEC("kretprobe/ib_uverbs_reg_mr")
int leave_register(struct pt_regs *ctx)
{
	registration_returned(RET(ctx));
	return 0;
}

/* dma_buf_attachment *dma_buf_dynamic_attach(buffer, device, functions, importer) */
SEC("kprobe/dma_buf_dynamic_attach")
int enter_attach_dmabuf(struct pt_regs *ctx)
{
	dmabuf_attached((void *)ARG1(ctx), (void *)ARG4(ctx));
	return 0;
}

/* struct ib_umem *ib_peer_umem_get(umem, error, flags) */
SEC("kretprobe/ib_peer_umem_get")
int leave_peer_memory(struct pt_regs *ctx)
{
	peer_answered(RET(ctx));
	return 0;
}

/* int nvidia_p2p_get_pages(token, space, address, length, page_table, …) */
SEC("kprobe/nvidia_p2p_get_pages")
int enter_gpu_pages(struct pt_regs *ctx)
{
	gpu_pages_entered(ARG5(ctx));
	return 0;
}

/* int nvidia_p2p_get_pages_persistent(address, length, page_table, flags) */
SEC("kprobe/nvidia_p2p_get_pages_persistent")
int enter_persistent_gpu_pages(struct pt_regs *ctx)
{
	gpu_pages_entered(ARG3(ctx));
	return 0;
}

SEC("kretprobe/nvidia_p2p_get_pages")
int leave_gpu_pages(struct pt_regs *ctx)
{
	gpu_pages_returned(RET(ctx));
	return 0;
}

/* int fill_res_mr_entry(message, capable, entry, port): "rdma resource show mr" */
SEC("kprobe/fill_res_mr_entry")
int enter_show_region(struct pt_regs *ctx)
{
	region_shown((void *)ARG3(ctx));
	return 0;
}

/* int ib_dereg_mr_user(region, …), also at the end of a process. */
SEC("kprobe/ib_dereg_mr_user")
int enter_deregister(struct pt_regs *ctx)
{
	deregistration_entered((void *)ARG1(ctx));
	return 0;
}

SEC("kretprobe/ib_dereg_mr_user")
int leave_deregister(struct pt_regs *ctx)
{
	deregistration_returned(RET(ctx));
	return 0;
}
