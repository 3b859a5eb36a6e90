/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a provider needs of libibverbs' private header. libibverbs/driver.h is
 * not packaged, so the parts in use are declared here.
 *
 * Source: rdma-core v44.0 (commit 91392a91eb41), libibverbs/driver.h: struct
 * verbs_device, struct verbs_device_ops, struct verbs_context_ops, struct
 * verbs_mr, struct verbs_qp. struct verbs_context_ops is the same up to v56.1,
 * the last release that names its private interface IBVERBS_PRIVATE_34.
 * layout.c proves the table against the library at run time.
 */
#ifndef VERBSIM_ABI_H
#define VERBSIM_ABI_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PRIVATE_VERSION "IBVERBS_PRIVATE_34"

/* The type of a slot that this provider leaves empty. */
typedef void (*sim_unused_op)(void);

struct verbs_mr {
	struct ibv_mr ibv_mr;
	int mr_type; /* enum ibv_mr_type; 0 is IBV_MR_TYPE_MR */
	int access;
};

#define SIM_VERBS_QP_EX (1u << 1) /* of comp_mask: enum verbs_qp_mask, VERBS_QP_EX */

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask;
	void *xrcd;
};

struct verbs_device;

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const void *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(void *sysfs_dev);
	struct verbs_context *(*alloc_context)(struct ibv_device *device, int cmd_fd,
					       void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *device, int cmd_fd);
	void *(*alloc_device)(void *sysfs_dev);
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_device {
	struct ibv_device device; /* must be first */
	const struct verbs_device_ops *ops;
	atomic_int refcount;
	void *entry[2]; /* struct list_node */
	void *sysfs;	/* NULL: libibverbs opens no kernel device */
	uint64_t core_support;
};

/* The slots are in alphabetical order. */
struct verbs_context_ops {
	sim_unused_op advise_mr;
	sim_unused_op alloc_dm;
	sim_unused_op alloc_mw;
	sim_unused_op alloc_null_mr;
	sim_unused_op alloc_parent_domain;
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	sim_unused_op alloc_td;
	sim_unused_op async_event;
	sim_unused_op attach_counters_point_flow;
	sim_unused_op attach_mcast;
	sim_unused_op bind_mw;
	sim_unused_op close_xrcd;
	sim_unused_op cq_event;
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	sim_unused_op create_counters;
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    struct ibv_comp_channel *channel, int comp_vector);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	sim_unused_op create_flow;
	sim_unused_op create_flow_action_esp;
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	sim_unused_op create_rwq_ind_table;
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	sim_unused_op create_srq_ex;
	sim_unused_op create_wq;
	sim_unused_op dealloc_mw;
	int (*dealloc_pd)(struct ibv_pd *pd);
	sim_unused_op dealloc_td;
	int (*dereg_mr)(struct verbs_mr *vmr);
	int (*destroy_ah)(struct ibv_ah *ah);
	sim_unused_op destroy_counters;
	int (*destroy_cq)(struct ibv_cq *cq);
	sim_unused_op destroy_flow;
	sim_unused_op destroy_flow_action;
	int (*destroy_qp)(struct ibv_qp *qp);
	sim_unused_op destroy_rwq_ind_table;
	int (*destroy_srq)(struct ibv_srq *srq);
	sim_unused_op destroy_wq;
	sim_unused_op detach_mcast;
	void (*free_context)(struct ibv_context *context);
	sim_unused_op free_dm;
	sim_unused_op get_srq_num;
	sim_unused_op import_dm;
	sim_unused_op import_mr;
	sim_unused_op import_pd;
	sim_unused_op modify_cq;
	sim_unused_op modify_flow_action_esp;
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
	sim_unused_op modify_qp_rate_limit;
	sim_unused_op modify_srq;
	sim_unused_op modify_wq;
	sim_unused_op open_qp;
	sim_unused_op open_xrcd;
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	sim_unused_op post_srq_ops;
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr);
	sim_unused_op query_device_ex;
	sim_unused_op query_ece;
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr);
	sim_unused_op query_qp_data_in_order;
	sim_unused_op query_rt_values;
	sim_unused_op query_srq;
	sim_unused_op read_counters;
	sim_unused_op reg_dm_mr;
	sim_unused_op reg_dmabuf_mr;
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
				 int access);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	sim_unused_op rereg_mr;
	sim_unused_op resize_cq;
	sim_unused_op set_ece;
	sim_unused_op unimport_dm;
	sim_unused_op unimport_mr;
	sim_unused_op unimport_pd;
};

/* Private, but exported and called by every provider. */
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t alloc_size,
				    struct verbs_context *context_offset, uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *vctx, const struct verbs_context_ops *ops);

#endif
