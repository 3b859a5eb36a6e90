package tracer

import "github.com/rdmaradar/rdmaradar/bpf"

// corePoint is one program at one function of the kernel's RDMA core.
type corePoint struct {
	function string
	program  string
	isReturn bool
	// user is set for functions of ib_uverbs, which may not be loaded.
	user bool
	// optional is set for functions that not every kernel has.
	optional bool
}

// corePoints lists the probes on the RDMA core, returns before entries. Plain
// kprobes need no more than CAP_BPF and CAP_PERFMON; programs of type fentry
// need CAP_SYS_ADMIN to name the type information of a module.
var corePoints = []corePoint{
	{function: "ib_modify_qp_with_udata", program: bpf.ResourcesProgLeaveModify, isReturn: true},
	{function: "ib_modify_qp", program: bpf.ResourcesProgLeaveModify, isReturn: true},
	{function: "ib_query_qp", program: bpf.ResourcesProgLeaveQuery, isReturn: true},
	{function: "ib_query_qp", program: bpf.ResourcesProgEnterQuery},
	{function: "ib_modify_qp_with_udata", program: bpf.ResourcesProgEnterModify},
	{function: "ib_modify_qp", program: bpf.ResourcesProgEnterModify},
	{function: "ib_destroy_qp_user", program: bpf.ResourcesProgEnterDestroy},
	{function: "ib_uverbs_reg_mr", program: bpf.ResourcesProgLeaveRegister, isReturn: true, user: true},
	{function: "ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR", program: bpf.ResourcesProgLeaveRegister, isReturn: true, user: true},
	{function: "ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG", program: bpf.ResourcesProgLeaveRegister, isReturn: true, user: true},
	{function: "ib_uverbs_handler_UVERBS_METHOD_REG_MR", program: bpf.ResourcesProgLeaveRegister, isReturn: true, user: true, optional: true},
	{function: "ib_dereg_mr_user", program: bpf.ResourcesProgLeaveDeregister, isReturn: true},
	{function: "ib_dereg_mr_user", program: bpf.ResourcesProgEnterDeregister},
	{function: "ib_uverbs_reg_mr", program: bpf.ResourcesProgEnterRegister, user: true},
	{function: "ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR", program: bpf.ResourcesProgEnterRegisterDmabuf, user: true},
	{function: "ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG", program: bpf.ResourcesProgEnterRegisterDevice, user: true},
	{function: "ib_uverbs_handler_UVERBS_METHOD_REG_MR", program: bpf.ResourcesProgEnterRegister, user: true, optional: true},
	{function: "dma_buf_dynamic_attach", program: bpf.ResourcesProgEnterAttachDmabuf, optional: true},
	{function: "ib_peer_umem_get", program: bpf.ResourcesProgLeavePeerMemory, isReturn: true, optional: true},
	{function: "nvidia_p2p_get_pages", program: bpf.ResourcesProgLeaveGpuPages, isReturn: true, optional: true},
	{function: "nvidia_p2p_get_pages", program: bpf.ResourcesProgEnterGpuPages, optional: true},
	{function: "nvidia_p2p_get_pages_persistent", program: bpf.ResourcesProgLeaveGpuPages, isReturn: true, optional: true},
	{function: "nvidia_p2p_get_pages_persistent", program: bpf.ResourcesProgEnterPersistentGpuPages, optional: true},
	{function: "fill_res_mr_entry", program: bpf.ResourcesProgEnterShowRegion},
	{function: "rdma_restrack_add", program: bpf.ResourcesProgEnterRestrackAdd},
	{function: "ib_create_qp_user", program: bpf.ResourcesProgEnterCreateUser},
	{function: "ib_create_qp_kernel", program: bpf.ResourcesProgEnterCreateKernel},
	{function: "ib_dispatch_event", program: bpf.ResourcesProgEnterDispatchEvent},
	{function: "ib_uverbs_qp_event_handler", program: bpf.ResourcesProgEnterUserEvent, user: true},
	{function: "ib_uverbs_cq_event_handler", program: bpf.ResourcesProgEnterUserEvent, user: true},
	{function: "ib_uverbs_srq_event_handler", program: bpf.ResourcesProgEnterUserEvent, user: true},
	{function: "ib_uverbs_wq_event_handler", program: bpf.ResourcesProgEnterUserEvent, user: true},
	{function: "__ib_qp_event_handler", program: bpf.ResourcesProgEnterQpEvent, optional: true},
}
