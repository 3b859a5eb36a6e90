//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* Posts and completions of consumers in the kernel, on the verbs of any driver.
 * The queue tracker is that of tracker.bpf.c, and so are its maps: user space puts
 * them in place of those declared here. An object of its own, because what it
 * needs of the types of the RDMA core may be missing. */

#define KERNEL_VERBS

#include "kernel.h"

#include "kverbs_lifecycle.h"
#include "kverbs_poll.h"
#include "kverbs_post.h"
#include "kverbs_receive.h"

char __license[] SEC("license") = "Dual BSD/GPL";

/* The data path. Its programs come twice: for entry and exit (fentry, fexit), one
 * copy for each function, and for kprobes, where the type information of the
 * driver's module cannot be used. The cookie is the index of the driver among the
 * libraries.
 *
 *   int post_send(struct ib_qp *, const struct ib_send_wr *, const struct ib_send_wr **bad)
 *   int post_recv(struct ib_qp *, const struct ib_recv_wr *, const struct ib_recv_wr **bad)
 *   int post_srq_recv(struct ib_srq *, const struct ib_recv_wr *, const struct ib_recv_wr **bad)
 *   int poll_cq(struct ib_cq *, int num_entries, struct ib_wc *) */

static __always_inline struct kernel_hit traced_hit(__u64 *ctx, enum call_kind kind)
{
	struct kernel_hit hit = {
		.cookie = bpf_get_attach_cookie(ctx),
		.kind = kind,
		.has_arguments = true,
	};
	__u64 context = (__u64)ctx;

	/* The arguments are kept on the stack of the call. By this way the verifier
	 * sees a number, with which one may reckon, and no pointer to the context. */
	bpf_probe_read_kernel(&hit.frame, sizeof(hit.frame), &context);
	bpf_get_func_arg(ctx, 0, &hit.object);
	bpf_get_func_arg(ctx, 1, &hit.list);
	bpf_get_func_arg(ctx, 2, &hit.third);
	return hit;
}

static __always_inline struct kernel_hit traced_exit(__u64 *ctx, enum call_kind kind,
						     enum exit_program program)
{
	struct kernel_hit hit = traced_hit(ctx, kind);
	__u64 result = 0;

	bpf_get_func_ret(ctx, &result);
	hit.result = result;
	hit.program = program;
	return hit;
}

static __always_inline struct kernel_hit probed_hit(struct pt_regs *ctx, enum call_kind kind)
{
	struct kernel_hit hit = {
		.frame = STACK(ctx),
		.object = ARG1(ctx),
		.list = ARG2(ctx),
		.third = ARG3(ctx),
		.cookie = bpf_get_attach_cookie(ctx),
		.kind = kind,
	};
	return hit;
}

static __always_inline struct kernel_hit probed_exit(struct pt_regs *ctx, enum call_kind kind)
{
	struct kernel_hit hit = {
		.frame = RETURN_FRAME(ctx),
		.cookie = bpf_get_attach_cookie(ctx),
		.kind = kind,
		.result = RET(ctx),
		.program = EXIT_ONLY,
	};
	return hit;
}

SEC("fentry/post_send")
int trace_post_send(__u64 *ctx)
{
	struct kernel_hit hit = traced_hit(ctx, CALL_POST_SEND);

	kernel_post_entered(&hit);
	return 0;
}

SEC("fexit/post_send")
int trace_post_send_exit(__u64 *ctx)
{
	struct kernel_hit hit = traced_exit(ctx, CALL_POST_SEND, EXIT_FIRST);

	kernel_post_returned(&hit);
	return 0;
}

SEC("fexit/post_send")
int trace_post_send_again(__u64 *ctx)
{
	struct kernel_hit hit = traced_exit(ctx, CALL_POST_SEND, EXIT_SECOND);

	kernel_post_returned(&hit);
	return 0;
}

SEC("fentry/post_recv")
int trace_post_recv(__u64 *ctx)
{
	struct kernel_hit hit = traced_hit(ctx, CALL_POST_RECEIVE);

	kernel_receive_entered(&hit);
	return 0;
}

SEC("fexit/post_recv")
int trace_post_recv_exit(__u64 *ctx)
{
	struct kernel_hit hit = traced_exit(ctx, CALL_POST_RECEIVE, EXIT_ONLY);

	kernel_receive_returned(&hit);
	return 0;
}

SEC("fentry/post_srq_recv")
int trace_post_srq_recv(__u64 *ctx)
{
	struct kernel_hit hit = traced_hit(ctx, CALL_POST_SHARED_RECEIVE);

	kernel_receive_entered(&hit);
	return 0;
}

SEC("fexit/post_srq_recv")
int trace_post_srq_recv_exit(__u64 *ctx)
{
	struct kernel_hit hit = traced_exit(ctx, CALL_POST_SHARED_RECEIVE, EXIT_ONLY);

	kernel_receive_returned(&hit);
	return 0;
}

SEC("fentry/poll_cq")
int trace_poll_cq(__u64 *ctx)
{
	struct kernel_hit hit = traced_hit(ctx, CALL_POLL);

	kernel_poll_entered(&hit);
	return 0;
}

SEC("fexit/poll_cq")
int trace_poll_cq_exit(__u64 *ctx)
{
	struct kernel_hit hit = traced_exit(ctx, CALL_POLL, EXIT_FIRST);

	kernel_poll_returned(&hit);
	return 0;
}

SEC("fexit/poll_cq")
int trace_poll_cq_again(__u64 *ctx)
{
	struct kernel_hit hit = traced_exit(ctx, CALL_POLL, EXIT_SECOND);

	kernel_poll_returned(&hit);
	return 0;
}

SEC("kprobe/post_send")
int probe_post_send(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_hit(ctx, CALL_POST_SEND);

	kernel_post_entered(&hit);
	return 0;
}

SEC("kretprobe/post_send")
int probe_post_send_exit(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_exit(ctx, CALL_POST_SEND);

	kernel_post_returned(&hit);
	return 0;
}

SEC("kprobe/post_recv")
int probe_post_recv(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_hit(ctx, CALL_POST_RECEIVE);

	kernel_receive_entered(&hit);
	return 0;
}

SEC("kretprobe/post_recv")
int probe_post_recv_exit(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_exit(ctx, CALL_POST_RECEIVE);

	kernel_receive_returned(&hit);
	return 0;
}

SEC("kprobe/post_srq_recv")
int probe_post_srq_recv(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_hit(ctx, CALL_POST_SHARED_RECEIVE);

	kernel_receive_entered(&hit);
	return 0;
}

SEC("kretprobe/post_srq_recv")
int probe_post_srq_recv_exit(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_exit(ctx, CALL_POST_SHARED_RECEIVE);

	kernel_receive_returned(&hit);
	return 0;
}

SEC("kprobe/poll_cq")
int probe_poll_cq(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_hit(ctx, CALL_POLL);

	kernel_poll_entered(&hit);
	return 0;
}

SEC("kretprobe/poll_cq")
int probe_poll_cq_exit(struct pt_regs *ctx)
{
	struct kernel_hit hit = probed_exit(ctx, CALL_POLL);

	kernel_poll_returned(&hit);
	return 0;
}

/* The control path, on the RDMA core. */

SEC("kprobe/ib_create_qp_kernel")
int enter_kernel_create(struct pt_regs *ctx)
{
	kernel_qp_creating(ARG2(ctx), STACK(ctx));
	return 0;
}

SEC("kretprobe/ib_create_qp_kernel")
int leave_kernel_create(struct pt_regs *ctx)
{
	kernel_qp_created(RET(ctx), RETURN_FRAME(ctx));
	return 0;
}

SEC("kprobe/ib_modify_qp")
int enter_kernel_modify(struct pt_regs *ctx)
{
	kernel_qp_modified(ARG1(ctx), ARG2(ctx), ARG3(ctx), STACK(ctx));
	return 0;
}

SEC("kprobe/ib_destroy_qp_user")
int enter_kernel_destroy(struct pt_regs *ctx)
{
	kernel_qp_destroyed(ARG1(ctx), STACK(ctx));
	return 0;
}

/* The RDMA core tells of interrupts: rdma_core:cq_schedule(struct ib_cq *). */
SEC("raw_tp/cq_schedule")
int cq_scheduled(__u64 *ctx)
{
	poll_scheduled(ctx[0]);
	return 0;
}

SEC("kprobe/ib_query_port")
int enter_query_port(struct pt_regs *ctx)
{
	note_driver(ARG1(ctx));
	return 0;
}
