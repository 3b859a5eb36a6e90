/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the rows of layouts.list for one provider, from the headers of
 * rdma-core that it is compiled with: -DMLX5, -DRXE or -DERDMA, and RELEASE, the
 * major version, for members whose names changed.
 */
#include <stddef.h>
#include <stdio.h>

#if defined(MLX5)
#include "mlx5.h"
#elif defined(RXE)
#include "rxe_queue.h"
#include "rxe.h"
#else
#include "erdma_verbs.h"
#endif

#define SIZE(name, type) printf(name "_SIZE %zu\n", sizeof(type))
#define PLACE(name, type, member) printf(name " %zu\n", offsetof(type, member))

#if defined(MLX5)
#if RELEASE < 60
#define ADDRESS buf
#else
#define ADDRESS ibv_buf.addr
#endif

static void print(void)
{
	SIZE("CONTEXT", struct mlx5_context);
	PLACE("CONTEXT_VERBS", struct mlx5_context, ibv_ctx.context);
	PLACE("CONTEXT_QP_TABLE", struct mlx5_context, qp_table);
	PLACE("CONTEXT_SRQ_TABLE", struct mlx5_context, srq_table);
	PLACE("CONTEXT_UIDX_TABLE", struct mlx5_context, uidx_table);
	PLACE("CONTEXT_DBG_FP", struct mlx5_context, dbg_fp);
	SIZE("CQ", struct mlx5_cq);
	PLACE("CQ_VERBS", struct mlx5_cq, verbs_cq.cq);
	PLACE("CQ_BUF", struct mlx5_cq, buf_a);
	PLACE("CQ_BUF_ADDR", struct mlx5_cq, buf_a.ADDRESS);
	PLACE("CQ_ACTIVE", struct mlx5_cq, active_buf);
	PLACE("CQ_LOCK", struct mlx5_cq, lock);
	PLACE("CQ_CQN", struct mlx5_cq, cqn);
	PLACE("CQ_CONS_INDEX", struct mlx5_cq, cons_index);
	PLACE("CQ_DBREC", struct mlx5_cq, dbrec);
	PLACE("CQ_CQE_SZ", struct mlx5_cq, cqe_sz);
	SIZE("QP", struct mlx5_qp);
	PLACE("QP_RSN", struct mlx5_qp, rsc.rsn);
	PLACE("QP_VERBS", struct mlx5_qp, verbs_qp.qp);
	PLACE("QP_IBV_QP", struct mlx5_qp, ibv_qp);
	PLACE("QP_BUF_ADDR", struct mlx5_qp, buf.ADDRESS);
	PLACE("QP_BF", struct mlx5_qp, bf);
	PLACE("QP_SQ_START", struct mlx5_qp, sq_start);
	PLACE("QP_SQ", struct mlx5_qp, sq);
	PLACE("QP_DB", struct mlx5_qp, db);
	PLACE("QP_RQ", struct mlx5_qp, rq);
	PLACE("WQ_WRID", struct mlx5_wq, wrid);
	PLACE("WQ_WQE_HEAD", struct mlx5_wq, wqe_head);
	PLACE("WQ_LOCK", struct mlx5_wq, lock);
	PLACE("WQ_COUNT", struct mlx5_wq, wqe_cnt);
	PLACE("WQ_MAX_POST", struct mlx5_wq, max_post);
	PLACE("WQ_HEAD", struct mlx5_wq, head);
	PLACE("WQ_TAIL", struct mlx5_wq, tail);
	PLACE("WQ_MAX_GS", struct mlx5_wq, max_gs);
#if RELEASE >= 44
	PLACE("WQ_STATE_GS", struct mlx5_wq, qp_state_max_gs);
#endif
	PLACE("WQ_SHIFT", struct mlx5_wq, wqe_shift);
	PLACE("WQ_QEND", struct mlx5_wq, qend);
	PLACE("WQ_WR_DATA", struct mlx5_wq, wr_data);
	SIZE("BF", struct mlx5_bf);
	PLACE("BF_REG", struct mlx5_bf, reg);
	PLACE("BF_BUF_SIZE", struct mlx5_bf, buf_size);
	SIZE("SRQ", struct mlx5_srq);
	PLACE("SRQ_VERBS", struct mlx5_srq, vsrq.srq);
	PLACE("SRQ_BUF_ADDR", struct mlx5_srq, buf.ADDRESS);
	PLACE("SRQ_LOCK", struct mlx5_srq, lock);
	PLACE("SRQ_WRID", struct mlx5_srq, wrid);
	PLACE("SRQ_NUMBER", struct mlx5_srq, srqn);
	PLACE("SRQ_MAX", struct mlx5_srq, max);
	PLACE("SRQ_MAX_GS", struct mlx5_srq, max_gs);
	PLACE("SRQ_SHIFT", struct mlx5_srq, wqe_shift);
	PLACE("SRQ_HEAD", struct mlx5_srq, head);
	PLACE("SRQ_TAIL", struct mlx5_srq, tail);
	PLACE("SRQ_DB", struct mlx5_srq, db);
	PLACE("SRQ_WAITQ_HEAD", struct mlx5_srq, waitq_head);
	PLACE("SRQ_WAITQ_TAIL", struct mlx5_srq, waitq_tail);
#if RELEASE >= 56
	PLACE("SRQ_BITMAP", struct mlx5_srq, free_wqe_bitmap);
	PLACE("SRQ_NWQES", struct mlx5_srq, nwqes);
#endif
}
#elif defined(RXE)
static void print(void)
{
	SIZE("CQ", struct rxe_cq);
#if RELEASE < 44
	PLACE("CQ_VERBS", struct rxe_cq, ibv_cq);
#else
	PLACE("CQ_VERBS", struct rxe_cq, vcq.cq);
#endif
	PLACE("CQ_QUEUE", struct rxe_cq, queue);
	PLACE("CQ_LOCK", struct rxe_cq, lock);
	SIZE("QP", struct rxe_qp);
#if RELEASE < 44
	PLACE("QP_VERBS", struct rxe_qp, ibv_qp);
#else
	PLACE("QP_VERBS", struct rxe_qp, vqp.qp);
#endif
	PLACE("QP_SQ", struct rxe_qp, sq);
	PLACE("QP_RQ", struct rxe_qp, rq);
	PLACE("WQ_QUEUE", struct rxe_wq, queue);
	PLACE("WQ_LOCK", struct rxe_wq, lock);
	PLACE("WQ_MAX_SGE", struct rxe_wq, max_sge);
	SIZE("SRQ", struct rxe_srq);
#if RELEASE < 44
	PLACE("SRQ_VERBS", struct rxe_srq, ibv_srq);
#else
	PLACE("SRQ_VERBS", struct rxe_srq, vsrq.srq);
#endif
	PLACE("SRQ_RQ", struct rxe_srq, rq);
}
#else
static void print(void)
{
	SIZE("CONTEXT", struct erdma_context);
	PLACE("CONTEXT_VERBS", struct erdma_context, ibv_ctx.context);
	PLACE("CONTEXT_QP_TABLE", struct erdma_context, qp_table);
	SIZE("CQ", struct erdma_cq);
	PLACE("CQ_VERBS", struct erdma_cq, base_cq);
	PLACE("CQ_DEPTH", struct erdma_cq, depth);
	PLACE("CQ_CI", struct erdma_cq, ci);
	PLACE("CQ_QUEUE", struct erdma_cq, queue);
	PLACE("CQ_LOCK", struct erdma_cq, lock);
	SIZE("QP", struct erdma_qp);
	PLACE("QP_VERBS", struct erdma_qp, base_qp);
	PLACE("QP_ID", struct erdma_qp, id);
	PLACE("QP_SQ_LOCK", struct erdma_qp, sq_lock);
	PLACE("QP_RQ_LOCK", struct erdma_qp, rq_lock);
	PLACE("QP_SQ", struct erdma_qp, sq);
	PLACE("QP_RQ", struct erdma_qp, rq);
	PLACE("WQ_BUFFER", struct erdma_queue, qbuf);
	PLACE("WQ_DB", struct erdma_queue, db);
	PLACE("WQ_DEPTH", struct erdma_queue, depth);
	PLACE("WQ_PI", struct erdma_queue, pi);
	PLACE("WQ_CI", struct erdma_queue, ci);
	PLACE("WQ_WR_TABLE", struct erdma_queue, wr_tbl);
	PLACE("WQ_DB_RECORD", struct erdma_queue, db_record);
}
#endif

int main(void)
{
	print();
	return 0;
}
