//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

#include "kernel.h"

#include "extended_poll.h"
#include "extended_post.h"
#include "maps/seen_files.h"
#include "maps/told.h"
#include "libbpf/bpf_core_read.h"
#include "own_stack.h"
#include "refusal.h"
#include "user_lifecycle.h"

char __license[] SEC("license") = "Dual BSD/GPL";

/* Types that no map names reach the type information, and so Go, this way. */
const struct slow_event *type_slow_event __attribute__((unused));
const struct control_event *type_control_event __attribute__((unused));
const struct cqe_sample *type_cqe_sample __attribute__((unused));
const enum counter *type_counter __attribute__((unused));
const enum control_kind *type_control_kind __attribute__((unused));
const enum post_function *type_post_function __attribute__((unused));
const enum queue_end *type_queue_end __attribute__((unused));
const enum queue_sync *type_queue_sync __attribute__((unused));
const enum entry_state *type_entry_state __attribute__((unused));
const enum stage *type_stage __attribute__((unused));
const enum qp_function *type_qp_function __attribute__((unused));
const enum cq_function *type_cq_function __attribute__((unused));
const enum extended_kind *type_extended_kind __attribute__((unused));
const enum extended_refusal *type_extended_refusal __attribute__((unused));
const enum extended_role *type_extended_role __attribute__((unused));
const enum site_place_kind *type_site_place_kind __attribute__((unused));
const enum scheduling_known *type_scheduling_known __attribute__((unused));
const enum hit *type_hit __attribute__((unused));

/* The data path, on the functions of a provider. The cookie of each probe is
 * the index of its library. */

SEC("uprobe/post_send")
int enter_post_send(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	post_entered(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uretprobe/post_send")
int leave_post_send(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	post_returned(RET(ctx), bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe/post_recv")
int enter_post_recv(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	receive_entered(ctx, POST_RECEIVE, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe/post_srq_recv")
int enter_post_srq_recv(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	receive_entered(ctx, POST_SHARED_RECEIVE, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uretprobe/post_recv")
int leave_post_recv(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	receive_returned(RET(ctx), bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe/bad_wr")
int post_refused(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	refusal_reached(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe/poll_cq")
int enter_poll_cq(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	poll_entered(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uretprobe/poll_cq")
int leave_poll_cq(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	poll_returned(RET(ctx), bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe/poll_cq")
int look_poll_cq(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	looked(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe/completion_site")
int completion_site(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	site_reached(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

/* The extended verbs, on the functions that objects point to. */

SEC("uprobe/extended_post")
int enter_extended_post(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);

	if (!seen.library || !is_called(ctx, ARG1(ctx) + IBV_QP_EX_FUNCTIONS, cookie))
		return 0;
	switch (COOKIE_ROLE(cookie)) {
	case ROLE_START:
		start_entered(ctx, &seen);
		break;
	case ROLE_BUILD:
		request_built(ctx, &seen, COOKIE_OPERATION(cookie));
		break;
	case ROLE_ABORT:
		abort_entered(ctx, &seen);
		break;
	default:
		memory_set(ctx, seen.cookie, COOKIE_ROLE(cookie));
		break;
	}
	return 0;
}

SEC("uprobe/wr_complete")
int enter_wr_complete(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);

	if (seen.library && is_called(ctx, ARG1(ctx) + IBV_QP_EX_FUNCTIONS, cookie))
		complete_entered(ctx, &seen);
	return 0;
}

SEC("uretprobe/wr_complete")
int leave_wr_complete(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct observed seen = observe(COOKIE_LIBRARY(bpf_get_attach_cookie(ctx)), HIT_RETURN);

	if (seen.library)
		complete_returned(RET(ctx), &seen);
	return 0;
}

SEC("uprobe/extended_poll")
int enter_extended_poll(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);

	if (seen.library && is_called(ctx, ARG1(ctx) + IBV_CQ_EX_FUNCTIONS, cookie))
		extended_poll_entered(ctx, &seen, cookie);
	return 0;
}

SEC("uretprobe/next_poll")
int leave_next_poll(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct observed seen = observe(COOKIE_LIBRARY(bpf_get_attach_cookie(ctx)), HIT_RETURN);

	if (seen.library)
		next_poll_returned(RET(ctx), &seen);
	return 0;
}

/* The control path, on the functions of libibverbs. */

SEC("uprobe/verbs_set_ops")
int enter_set_ops(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct caller caller = current_caller();
	__u64 now = bpf_ktime_get_ns();
	__u64 *last = bpf_map_lookup_elem(&told, &caller.tgid);

	/* User space looks twice, the second time after this interval. */
	if (last && now - *last < TELL_AGAIN_NS)
		return 0;
	if (tell(CONTROL_NEW_CONTEXT, caller.tgid, caller.incarnation))
		bpf_map_update_elem(&told, &caller.tgid, &now, BPF_ANY);
	return 0;
}

SEC("uprobe/ibv_modify_qp")
int enter_modify_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	modify_entered(ARG1(ctx), ARG2(ctx), ARG3(ctx));
	return 0;
}

SEC("uretprobe/ibv_modify_qp")
int leave_modify_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct thread *thread = this_thread();

	if (!thread || !thread->modify_qp)
		return 0;
	__u64 qp = thread->modify_qp;
	if ((int)RET(ctx) == 0) {
		modified(thread);
		watch_functions(qp);
	}
	thread->modify_qp = 0;
	return 0;
}

SEC("uprobe/ibv_destroy_qp")
int enter_destroy_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	destroy_entered(ARG1(ctx));
	return 0;
}

SEC("uprobe/ibv_destroy_srq")
int enter_destroy_srq(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	srq_destroy_entered(ARG1(ctx));
	return 0;
}

/* struct ibv_qp *ibv_create_qp(struct ibv_pd *, struct ibv_qp_init_attr *) */
SEC("uprobe/ibv_create_qp")
int enter_create_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct thread *thread = this_thread();

	if (thread)
		thread->create_attr = ARG2(ctx);
	return 0;
}

SEC("uretprobe/ibv_create_qp")
int leave_create_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct thread *thread = this_thread();

	if (!thread || !thread->create_attr)
		return 0;
	__u64 attr = thread->create_attr;
	thread->create_attr = 0;
	if (RET(ctx))
		created(RET(ctx), attr);
	return 0;
}

/* int ibv_cmd_create_qp*(pd or context, struct ibv_qp *, attributes, …): what
 * every provider calls, also for QPs that do not come from ibv_create_qp. */
SEC("uprobe/ibv_cmd_create_qp")
int enter_cmd_create_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct thread *thread = this_thread();

	if (!thread)
		return 0;
	thread->command_qp = ARG2(ctx);
	thread->command_attr = ARG3(ctx);
	return 0;
}

SEC("uretprobe/ibv_cmd_create_qp")
int leave_cmd_create_qp(struct pt_regs *ctx)
{
	keep_own_stack(ctx);
	struct thread *thread = this_thread();

	if (!thread || !thread->command_qp)
		return 0;
	__u64 qp = thread->command_qp;
	thread->command_qp = 0;
	if ((int)RET(ctx) == 0)
		created(qp, thread->command_attr);
	return 0;
}

/* Processes and files. */

SEC("raw_tp/sched_process_exec")
int process_exec(void *ctx)
{
	struct caller caller = current_caller();

	end_watch(0);
	if (bpf_map_lookup_elem(&processes, &caller.tgid))
		tell(CONTROL_EXEC, caller.tgid, caller.incarnation);
	if (watch_execs)
		tell(CONTROL_NEW_FILE, caller.tgid, caller.incarnation);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int process_exit(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct caller caller = current_caller();

	end_watch(NEVER_WATCHED);
	if (!bpf_map_lookup_elem(&processes, &caller.tgid))
		return 0;
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		tell(CONTROL_EXIT, caller.tgid, caller.incarnation);
	return 0;
}

SEC("tp_btf/sched_waking")
int sched_waking(__u64 *ctx)
{
	keep_waking((struct task_struct *)ctx[0]);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int interrupt_entry(void *ctx)
{
	interrupt_began(INTERRUPT_HARD);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int interrupt_exit(void *ctx)
{
	interrupt_ended(INTERRUPT_HARD);
	return 0;
}

SEC("tp_btf/softirq_entry")
int softirq_entry(void *ctx)
{
	interrupt_began(INTERRUPT_SOFT);
	return 0;
}

SEC("tp_btf/softirq_exit")
int softirq_exit(void *ctx)
{
	interrupt_ended(INTERRUPT_SOFT);
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx)
{
	note_switch((struct task_struct *)ctx[1], (struct task_struct *)ctx[2], ctx[0]);
	return 0;
}

#define VM_EXEC 4

/* Every mapping of a file comes by here (kernel/events/uprobes.c); a file is
 * told once. Without this probe user space finds new files by looking. */
SEC("fentry/uprobe_mmap")
int map_file(__u64 *ctx)
{
	struct vm_area_struct *vma = (void *)ctx[0];
	struct file *file;
	struct file_key key = {};
	__u8 seen = 1;

	if (!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
		return 0;
	file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return 0;
	key.inode = BPF_CORE_READ(file, f_inode, i_ino);
	key.size = BPF_CORE_READ(file, f_inode, i_size);
	key.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	key.generation = BPF_CORE_READ(file, f_inode, i_generation);
	if (bpf_map_lookup_elem(&seen_files, &key))
		return 0;
	struct caller caller = current_caller();
	if (tell(CONTROL_NEW_FILE, caller.tgid, caller.incarnation))
		bpf_map_update_elem(&seen_files, &key, &seen, BPF_ANY);
	return 0;
}
