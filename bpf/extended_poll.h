/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "extended.h"
#include "maps/extended_cqs.h"
#include "site.h"

/* Polling through ibv_cq_ex. start_poll and next_poll make one completion the
 * current one of the Completion Queue; when there is none, start_poll fails, and
 * neither of the others is called. So a probe on next_poll and end_poll, the
 * return of next_poll with it, is trapped once or twice for a completion and
 * never on an empty poll. The completion of start_poll is still the current one
 * when next_poll or end_poll is entered, and is delivered then: late by what the
 * application did with it. The others are delivered as next_poll returns. */

struct ibv_cq_ex_head {
	__u32 status;
	__u64 wr_id;
} __attribute__((packed)); /* status is the second half of a word */
_Static_assert(sizeof(struct ibv_cq_ex_head) == 12, "ibv_cq_ex from status to wr_id");

/* Reads a member as the provider's function does. */
static __noinline bool read_member(const struct extended_reader *reader, __u64 object, __u64 *value)
{
	__u64 address = object;
	__u64 raw = 0;

	*value = 0;
	for (__u32 i = 0; i < READER_STEPS; i++) {
		if (i + 1 >= reader->steps)
			break;
		if (bpf_probe_read_user(&address, sizeof(address),
					(void *)(address + reader->offsets[i])))
			return false;
	}
	if (reader->steps == 0 || reader->steps > READER_STEPS)
		return false;
	address += reader->offsets[(reader->steps - 1) & (READER_STEPS - 1)];
	switch (reader->size) {
	case 1:
		if (bpf_probe_read_user(&raw, 1, (void *)address))
			return false;
		break;
	case 2:
		if (bpf_probe_read_user(&raw, 2, (void *)address))
			return false;
		raw = reader->swap ? __builtin_bswap16(raw) : raw;
		break;
	case 4:
		if (bpf_probe_read_user(&raw, 4, (void *)address))
			return false;
		raw = reader->swap ? __builtin_bswap32(raw) : raw;
		break;
	default:
		if (bpf_probe_read_user(&raw, 8, (void *)address))
			return false;
		raw = reader->swap ? __builtin_bswap64(raw) : raw;
		break;
	}
	*value = raw >> (reader->shift & 63) & reader->mask;
	return true;
}

/* A completion of which it cannot be told whose it is. */
static __always_inline void deliver_anonymous(struct caller *caller)
{
	if (!admit_process(caller))
		return;
	count(COMPLETIONS_SEEN);
	count(COMPLETIONS_AMBIGUOUS);
	lose_completions(caller, LOSS_QP_NUMBER, 1);
}

/* Whether the queue may have receives outstanding. */
static __always_inline bool may_receive(struct queue *queue)
{
	if (queue->srq)
		return true;
	if (queue->recv_known)
		return queue->recv_posted > queue->recv_completed;
	return queue->recv_posted || !seen_from_start(queue, library_at(queue->library));
}

/* The provider's read_opcode cannot be followed: is the completion of a send or
 * a receive? false when that stays open. Takes what it works on from the
 * thread, so that the verifier checks it once. */
__noinline int tell_direction(__u64 cq_address)
{
	struct thread *thread = this_thread();
	__u32 slot = 0;

	if (!thread)
		return 0;
	struct delivery *delivery = &thread->delivery;
	struct queue_key key = queue_key_of(&delivery->caller, delivery->cq_context,
					    delivery->wc.qp_num & 0xffffff);
	struct queue *queue = find_queue(&key, &slot);
	if (!queue)
		return 1;
	if (queue->send_cq != queue->recv_cq) {
		delivery->wc.opcode = cq_address == queue->recv_cq ? IBV_WC_RECV : 0;
		return 1;
	}
	if (!may_receive(queue))
		return 1;
	delivery->steps = SEARCH_STEPS + some_zero;
	if (may_be_outstanding(queue, delivery->wc.wr_id, &delivery->steps)) {
		lose_sync(queue);
		return 0;
	}
	delivery->wc.opcode = IBV_WC_RECV;
	return 1;
}

static __always_inline __u32 ask_device(const struct extended_set *set, __u64 cq)
{
	__u64 value;

	if (!read_member(&set->direction, cq, &value) || value > 31)
		return TOLD_NOT;
	if (set->sends >> value & 1)
		return TOLD_SEND;
	return set->receives >> value & 1 ? TOLD_RECEIVE : TOLD_NOT;
}

/* Fills in which queue the completion is of. The opcode of a failed one is not
 * valid; without the device's word it is told as with poll_cq. */
static __always_inline bool read_direction(struct thread *thread, const struct extended_set *set,
					   __u64 cq)
{
	struct delivery *delivery = &thread->delivery;
	__u64 value;

	delivery->queue_told = ask_device(set, cq);
	if (delivery->wc.status != IBV_WC_SUCCESS)
		return true;
	if (delivery->queue_told != TOLD_NOT) {
		delivery->wc.opcode = delivery->queue_told == TOLD_RECEIVE ? IBV_WC_RECV : 0;
		return true;
	}
	if (read_member(&set->opcode, cq, &value)) {
		delivery->wc.opcode = value;
		return true;
	}
	return tell_direction(cq);
}

/* Fills thread->delivery.wc with the current completion of an ibv_cq_ex; 0 when
 * that is not to be delivered. Not static: the verifier checks it once. */
__noinline int read_current(__u64 cq)
{
	struct thread *thread = this_thread();
	struct caller own = current_caller();
	struct caller *caller = &own;
	struct ibv_cq_ex_head head = {};
	__u64 value;

	if (!thread) {
		note_loss(caller);
		return 0;
	}
	if (is_excluded(caller))
		return 0;
	struct ibv_wc *wc = &thread->delivery.wc;
	__u64 *functions = thread->set.pointers;
	if (bpf_probe_read_user(&head, sizeof(head), (void *)(cq + IBV_CQ_EX_STATUS)) ||
	    bpf_probe_read_user(functions, CQ_FUNCTIONS * sizeof(*functions),
				(void *)(cq + IBV_CQ_EX_FUNCTIONS)) ||
	    bpf_probe_read_user(&thread->delivery.cq_context, sizeof(__u64),
				(void *)(cq + IBV_CQ_CONTEXT))) {
		lose_completions(caller, LOSS_READ_WC, 1);
		return 0;
	}
	struct extended_key key = key_of_set(
		caller, EXTENDED_CQ, digest_pointers(functions, CQ_FUNCTIONS, CQ_FUNCTIONS));
	struct extended_set *set = bpf_map_lookup_elem(&extended_sets, &key);
	if (!set || !read_member(&set->qp_num, cq, &value)) {
		if (!set)
			is_cq_watched(caller, cq, thread->delivery.cq_context);
		deliver_anonymous(caller);
		return 0;
	}
	__builtin_memset(wc, 0, sizeof(*wc));
	wc->wr_id = head.wr_id;
	wc->status = head.status;
	wc->qp_num = value;
	thread->delivery.caller = *caller;
	if (!read_direction(thread, set, cq)) {
		count(COMPLETIONS_SEEN);
		count_unmatched(&thread->delivery, NO_DEVICE, COMPLETIONS_AMBIGUOUS);
		return 0;
	}
	if (head.status != IBV_WC_SUCCESS) {
		if (read_member(&set->vendor_err, cq, &value))
			wc->vendor_err = value;
	} else if (is_receive(wc->opcode) && read_member(&set->byte_len, cq, &value)) {
		wc->byte_len = value;
	}
	return 1;
}

static __always_inline void deliver_current(struct thread *thread, __u64 cq)
{
	__u64 now = bpf_ktime_get_ns();

	if (read_current(cq))
		deliver_at_site(cq, now, thread);
	thread->delivery.queue_told = TOLD_NOT;
	charge_work(thread, now);
}

static __always_inline struct extended_cq *extended_cq_of(struct caller *caller, __u64 address)
{
	struct cq_key key = { .incarnation = caller->incarnation,
			      .cq = address,
			      .tgid = caller->tgid };
	struct extended_cq *cq = bpf_map_lookup_elem(&extended_cqs, &key);

	if (cq)
		return cq;
	struct extended_cq fresh = {};
	bpf_map_update_elem(&extended_cqs, &key, &fresh, BPF_NOEXIST);
	cq = bpf_map_lookup_elem(&extended_cqs, &key);
	if (!cq)
		count(LOSS_CQ_MAP_FULL);
	return cq;
}

enum step {
	STEP_DONE,  /* what is current was delivered */
	STEP_FIRST, /* the completion of start_poll was not */
	STEP_NONE,  /* another probe does it */
};

/* Says whether the completion of start_poll is to be delivered now: on the first
 * next_poll or end_poll after it. Not static, to have a stack of its own. A file
 * that was reached through two mounts has two probes at one place: the second
 * is told by where and when it is. since is when the library began to be
 * observed. */
__noinline int enter_step(__u64 address, __u64 instruction, __u64 stack, __u64 cookie, __u64 since)
{
	__u32 library = COOKIE_LIBRARY(cookie);
	struct caller caller = current_caller();
	struct extended_cq *cq = extended_cq_of(&caller, address);
	__u64 now = bpf_ktime_get_ns();

	if (!cq) {
		note_loss(&caller);
		return STEP_NONE;
	}
	if (cq->instruction == instruction && cq->stack == stack && cq->library != library &&
	    now - cq->ns < BACK_NS && !is_dropped(cq->library)) {
		count_duplicate(library_at(library), cq->library);
		return STEP_NONE;
	}
	bool delivered = cq->first_delivered && cq->since == since;
	cq->since = since;
	cq->instruction = instruction;
	cq->stack = stack;
	cq->library = library;
	cq->ns = now;
	cq->first_delivered = COOKIE_ROLE(cookie) == ROLE_NEXT_POLL;
	return delivered ? STEP_DONE : STEP_FIRST;
}

static __always_inline void extended_poll_entered(struct pt_regs *ctx, struct observed *seen,
						  __u64 cookie)
{
	struct thread *thread = seen->thread;
	__u64 cq = ARG1(ctx);
	int step = enter_step(cq, IP(ctx), STACK(ctx), cookie, seen->library->attached_ns);

	if (step == STEP_NONE)
		return;
	settle_post(thread);
	if (step == STEP_FIRST)
		deliver_current(thread, cq);
	if (COOKIE_ROLE(cookie) != ROLE_NEXT_POLL)
		return;
	thread->extended_poll.object = cq;
	thread->extended_poll.cookie = seen->cookie;
	thread->extended_poll.entry_ns = bpf_ktime_get_ns();
	thread->extended_poll.active = 1;
}

static __always_inline void next_poll_returned(int result, struct observed *seen)
{
	struct thread *thread = seen->thread;

	if (!thread->extended_poll.active || thread->extended_poll.cookie != seen->cookie)
		return;
	thread->extended_poll.active = 0;
	/* It may have been entered before a gap, and this be another's return. */
	if (result == 0 && thread->extended_poll.entry_ns > seen->library->attached_ns)
		deliver_current(thread, thread->extended_poll.object);
}
