/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of the simulated device. Locks, in the order in which they are
 * taken: a queue's own (sq, rq, srq, cq, as in real providers), then the
 * device's, which stands for the hardware and is held for short work only.
 */
#ifndef VERBSIM_SIM_H
#define VERBSIM_SIM_H

#include "abi.h"
#include "verbsim.h"

#include <pthread.h>
#include <time.h>

#define SIM_MAX_QPS 16384
#define SIM_MAX_WR 32768
#define SIM_MAX_SGE 32
#define SIM_NO_HEAP UINT32_MAX
#define SIM_NEVER UINT64_MAX
#define SIM_QPN_MASK 0xffffffu
#define SIM_GRH_BYTES 40
/* The shortest useful min_rnr_timer of the InfiniBand specification: 10 us. */
#define SIM_RNR_NS 10000
#define SIM_RNR_INFINITE 7
#define SIM_VENDOR_FLUSH 0x5f
#define SIM_VENDOR_RETRY 0x81

struct sim_qp;

/* A send work request as the hardware holds it. */
struct sim_wqe {
	uint64_t wr_id, bytes, due;
	uint32_t opcode, imm, dest_qpn, status, vendor_err;
	uint8_t signaled, rnr_left;
};

/* A posted receive buffer. */
struct sim_rwqe {
	uint64_t wr_id;
};

/* A ring of receives, of a queue pair or shared. Indices grow without bound. */
struct sim_rq {
	pthread_spinlock_t lock; /* posters */
	struct sim_rwqe *ring;
	uint32_t mask, depth, max_sge;
	uint32_t head;		/* posted; by the poster, read under the device lock */
	uint32_t next;		/* next to be consumed; device lock */
	_Atomic uint32_t freed; /* slots given back, by poll_cq */
};

#ifdef SIM_MLX5_CQE
/* What a device of mlx5 writes, as far as anybody looks: struct mlx5_cqe64 of
 * infiniband/mlx5dv.h, big-endian. */
struct sim_entry {
	uint8_t others[48];
	uint64_t timestamp;
	uint32_t sop_drop_qpn;
	uint8_t rest[4];
};
#endif

/* A completion as the hardware writes it. */
struct sim_cqe {
#ifdef SIM_MLX5_CQE
	struct sim_entry entry; /* must be first */
#endif
	uint64_t wr_id, due;
	struct sim_qp *qp;
	struct sim_rq *rq; /* of a receive: the ring that gets its slot back */
	uint32_t sq_freed; /* of a send: the Send Queue is free up to here */
	uint32_t qpn, status, vendor_err, byte_len, imm, src_qp;
	uint16_t wc_opcode, wc_flags;
	uint8_t recv, has_len;
};

struct sim_cq {
	union { /* must be first */
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct sim_device *dev;
	pthread_spinlock_t lock; /* pollers */
	struct sim_cqe *ring;
	uint32_t mask, depth;
	_Atomic uint32_t head; /* written by the hardware, device lock */
	_Atomic uint32_t tail; /* consumed by pollers, cq lock */
	_Atomic int overrun;
	const struct sim_cqe *current; /* between start_poll and end_poll: what is read */
	struct sim_cqe copy;
	uint32_t taken;		    /* since start_poll */
	const struct sim_cqe *last; /* that poll_cq delivered: its loop keeps the address, as
				       libmlx5's */
	uint64_t due[VERBSIM_DUE];
};

struct sim_srq {
	struct ibv_srq ibv; /* must be first */
	struct sim_device *dev;
	struct sim_rq rq;
};

/* Requests of ibv_qp_ex that are being built, and what an end without success restores. */
struct sim_build {
	uint32_t head;
	int err, effect_armed;
	struct verbsim_effect effect;
};

struct sim_qp {
	struct verbs_qp vqp; /* must be first */
	struct sim_device *dev;
	pthread_spinlock_t sq_lock;
	struct sim_wqe *sq;
	uint32_t sq_mask, sq_depth, sq_max_sge;
	uint32_t sq_head;	   /* built by the poster; sq lock */
	uint32_t hw_head, hw_next; /* rung and next to complete; device lock */
	_Atomic uint32_t sq_freed; /* slots free up to here, by poll_cq */
	_Atomic uint32_t state;	   /* enum ibv_qp_state as the hardware sees it */
	uint32_t dest_qpn, rnr_retry, heap_index;
	uint64_t last_due;
	uint8_t sig_all;
	int effect_armed; /* sq lock */
	struct verbsim_effect effect;
	struct sim_build build; /* sq lock, which is held from wr_start on */
	struct sim_rq rq;
};

struct sim_device {
	struct verbs_device vdev; /* must be first */
	pthread_spinlock_t lock;
	uint64_t rate_bps, epoch;	 /* epoch: CLOCK_MONOTONIC at creation */
	uint64_t tx_free_ps, rx_free_ps; /* when the port is free, since epoch */
	_Atomic uint64_t latency_ns, stall_ns;
	int check_pointers;
	uint64_t overtake_ns;
	_Atomic uint32_t posts; /* counted where some are overtaken */
	uint32_t first_qpn, next_free, heap_len;
	struct sim_qp **qps;  /* by number - first_qpn */
	struct sim_qp **heap; /* by the time of the next completion */
	_Atomic uint64_t next_due;
	_Atomic uint32_t next_key;
};

struct sim_context {
	struct verbs_context ibv_ctx;
};

static inline uint64_t sim_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline struct sim_device *sim_device_of(struct ibv_context *context)
{
	return (struct sim_device *)context->device;
}

/* The smallest power of two that is at least n, n up to 2^31. */
static inline uint32_t sim_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* context.c */
struct verbs_context *sim_alloc_context(struct ibv_device *device, int cmd_fd, void *private_data);

/* layout.c: 0, or -1 with the reason in err. */
int sim_check_layout(struct ibv_device *device, char *err, size_t errlen);

/* objects.c */
struct ibv_pd *sim_alloc_pd(struct ibv_context *context);
int sim_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *sim_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			  int access);
int sim_dereg_mr(struct verbs_mr *vmr);
struct ibv_ah *sim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sim_destroy_ah(struct ibv_ah *ah);
int sim_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);

/* cq.c */
struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector);
int sim_destroy_cq(struct ibv_cq *cq);
int sim_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void sim_cq_push(struct sim_cq *cq, const struct sim_cqe *cqe); /* device lock */
void sim_cq_clean(struct sim_cq *cq, const struct sim_qp *qp);	/* cq and device lock */

/* cq_ex.c */
struct ibv_cq_ex *sim_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* poll.c */
void sim_cq_refresh(struct sim_cq *cq, uint32_t want); /* cq lock */
void sim_cq_give_back(const struct sim_cqe *cqe);
int sim_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);

/* qp.c */
struct ibv_qp *sim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int sim_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int sim_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int sim_destroy_qp(struct ibv_qp *ibqp);

/* qp_ex.c */
struct ibv_qp *sim_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* As libmlx5 does, wr_complete is one function while requests may be posted and another else. */
void sim_qp_choose_complete(struct sim_qp *qp);

/* recv.c */
int sim_rq_init(struct sim_rq *rq, uint32_t depth, uint32_t max_sge);
void sim_rq_free(struct sim_rq *rq);
struct ibv_srq *sim_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int sim_destroy_srq(struct ibv_srq *srq);
int sim_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int sim_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* send.c */
int sim_send_supported(const struct sim_qp *qp, uint32_t opcode);
void sim_apply_effect(struct sim_qp *qp, struct sim_wqe *wqe);
int sim_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/* peek.c: reads that fail instead of faulting. */
int sim_peek(void *to, const void *from, size_t len);
int sim_send_list_is_cyclic(const struct ibv_send_wr *wr);

/* wire.c, device lock: when the port has moved the bytes, in nanoseconds. */
uint64_t sim_wire_done(struct sim_device *dev, uint32_t opcode, uint64_t bytes, uint64_t now);

/* engine.c, device lock */
void sim_engine_ring(struct sim_qp *qp, uint32_t head, uint64_t now);
void sim_engine_run(struct sim_device *dev, uint64_t now);
void sim_engine_error(struct sim_qp *qp, uint64_t now);
void sim_engine_drop(struct sim_qp *qp);
void sim_engine_flush_recv(struct sim_qp *qp, uint64_t now);

/* heap.c, device lock */
uint64_t sim_qp_due(const struct sim_qp *qp);
void sim_heap_update(struct sim_qp *qp);
void sim_heap_remove(struct sim_qp *qp);

#endif
