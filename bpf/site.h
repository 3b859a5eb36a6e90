/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "look.h"
#include "maps/sites.h"
#include "poll.h"
#include "registers.h"
#include "sched.h"

/* A completion site is an instruction inside of poll_cq that runs once for each
 * completion delivered and never on an empty poll. There the completion is
 * written, or what is missing is in registers, and so it is read at once: no
 * probe on entry and return, nothing trapped on an empty poll. */

static __always_inline __u64 read_place(struct pt_regs *ctx, const struct site_place *place)
{
	__u64 value = read_register(ctx, place->register_offset);

	if (place->kind == SITE_PLACE_MEMORY) {
		__u64 address = value + place->offset;

		value = 0;
		bpf_probe_read_user(&value, sizeof(value), (void *)address);
	}
	return value;
}

static __always_inline __u64 locate(struct pt_regs *ctx, const struct site_location *location)
{
	__u64 address = read_place(ctx, &location->base) + location->add;

	if (location->counter.kind != SITE_PLACE_NONE)
		address += (__s64)(__s32)read_place(ctx, &location->counter) * location->scale;
	return address;
}

/* Puts in what the function has not written yet. Only whole 32-bit members are
 * found missing in practice; others are not offered as sites. */
static __always_inline void apply_overrides(struct pt_regs *ctx, const struct site *site,
					    struct ibv_wc *wc)
{
	for (__u32 i = 0; i < OVERRIDES; i++) {
		if (i >= site->override_count)
			break;
		const struct site_override *override = &site->overrides[i];
		__u64 value = override->from.kind == SITE_PLACE_NONE
				      ? (__u64) override->constant
				      : read_place(ctx, &override->from);

		switch (override->offset) {
		case __builtin_offsetof(struct ibv_wc, wr_id):
			wc->wr_id = value;
			break;
		case __builtin_offsetof(struct ibv_wc, status):
			wc->status = value;
			break;
		case __builtin_offsetof(struct ibv_wc, opcode):
			wc->opcode = value;
			break;
		case __builtin_offsetof(struct ibv_wc, vendor_err):
			wc->vendor_err = value;
			break;
		case __builtin_offsetof(struct ibv_wc, byte_len):
			wc->byte_len = value;
			break;
		case __builtin_offsetof(struct ibv_wc, qp_num):
			wc->qp_num = value;
			break;
		}
	}
}

/* A file that was reached through two mounts has two probes at one site. */
static __always_inline bool is_double(struct observed *seen, struct pt_regs *ctx, __u64 wc,
				      __u64 now)
{
	struct thread *thread = seen->thread;
	bool same = thread->site_library != seen->cookie && thread->site_wc == wc &&
		    thread->site_stack == STACK(ctx) && thread->site_instruction == IP(ctx) &&
		    now - thread->site_ns < BACK_NS && !is_dropped(thread->site_library);

	if (same) {
		count_duplicate(seen->library, thread->site_library);
		count(COMPLETIONS_SEEN);
		count(COMPLETIONS_DUPLICATE);
		return true;
	}
	thread->site_wc = wc;
	thread->site_stack = STACK(ctx);
	thread->site_instruction = IP(ctx);
	thread->site_library = seen->cookie;
	thread->site_ns = now;
	return false;
}

/* Delivers the completion that thread->delivery.wc holds, of a CQ. */
static __always_inline void deliver_at_site(__u64 cq_address, __u64 now, struct thread *thread)
{
	struct delivery *delivery = &thread->delivery;

	delivery->cq_address = cq_address;
	delivery->now = now;
	delivery->unordered = 0; /* It is reached under the lock of the CQ. */
	note_absence(&thread->poller, delivery);
	__u64 look_ns = last_look(thread, delivery);
	if (look_ns) {
		delivery->short_poll_ns = look_ns;
		delivery->evidence_ns = ~0ULL;
	}
	delivery->steps = SEARCH_STEPS;

	__u64 context;
	__u32 slot;
	struct queue *queue = recent_of_cq(thread, &delivery->caller,
					   delivery->wc.qp_num & 0xffffff, cq_address, &slot);
	if (queue) {
		deliver_to(queue, slot, thread);
		return;
	}
	if (bpf_probe_read_user(&context, sizeof(context), (void *)(cq_address + IBV_CQ_CONTEXT))) {
		if (!is_excluded(&delivery->caller))
			lose_completions(&delivery->caller, LOSS_READ_CQ, 1);
		return;
	}
	delivery->cq_context = context;
	deliver(thread);
}

/* Whether the completion was seen inside of a call that was seen to begin: then
 * its return delivers, and this is the comparison of both ways. */
static __always_inline bool is_compared(struct pt_regs *ctx, struct thread *thread,
					struct site *site, __u32 library)
{
	if (!return_delivers(&thread->poll))
		return false;
	if (thread->poll.function == site->function && thread->poll.cookie == library) {
		thread->site_digest = digest_completion(thread->site_digest, &thread->delivery.wc);
		thread->site_hits++;
		if (locate(ctx, &site->cq) != thread->poll.object)
			thread->site_digest = ~0ULL;
	}
	return true;
}

static __always_inline void site_reached(struct pt_regs *ctx, __u64 cookie)
{
	struct observed seen = observe(COOKIE_LIBRARY(cookie), HIT_ENTRY);
	struct thread *thread = seen.thread;
	__u32 index = COOKIE_INDEX(cookie);

	if (!seen.library)
		return;
	struct site *site = bpf_map_lookup_elem(&sites, &index);
	if (!site)
		return;
	thread->look_hits++;
	settle_post(thread);
	__u64 address = locate(ctx, &site->wc);
	if (!read_completion(thread, address)) {
		struct caller caller = caller_of(seen.task);

		lose_completions(&caller, LOSS_READ_WC, 1);
		return;
	}
	apply_overrides(ctx, site, &thread->delivery.wc);
	if (is_compared(ctx, thread, site, seen.cookie))
		return;
	__u64 now = bpf_ktime_get_ns();
	if (is_double(&seen, ctx, address, now))
		return;
	thread->delivery.caller = caller_of(seen.task);
	if (read_cqe_stamps && site->cqe.base.kind != SITE_PLACE_NONE)
		read_cqe(&thread->delivery, locate(ctx, &site->cqe));
	deliver_at_site(locate(ctx, &site->cq), now, thread);
	if (read_cqe_stamps)
		thread->delivery.has_cqe = thread->delivery.cqe_stamp = 0;
	charge_work(thread, now);
}
