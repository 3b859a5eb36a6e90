/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/extended_sets.h"
#include "observe.h"
#include "user_lifecycle.h"

/* Which functions do the objects of the extended verbs hold? They are read when
 * a QP is on its way to RTS, and user space is told of each combination once: it
 * probes them when they are functions of a provider. */

/* Functions of one provider are close together, and to its poll_cq. */
#define TEXT_SPAN (16ULL << 20)

static __always_inline bool is_near(__u64 pointer, __u64 function)
{
	return pointer - function + TEXT_SPAN < 2 * TEXT_SPAN;
}

/* Whether the three pointers can be functions of the context's provider: objects
 * of other kinds have anything else in their place. */
static __noinline bool are_functions(__u64 context, __u64 a, __u64 b, __u64 c)
{
	__u64 poll_cq = 0;

	if (!a || !b || !c || a == b || b == c)
		return false;
	if (bpf_probe_read_user(&poll_cq, sizeof(poll_cq), (void *)(context + IBV_CONTEXT_POLL_CQ)))
		return false;
	return is_near(a, poll_cq) && is_near(b, poll_cq) && is_near(c, poll_cq);
}

static __always_inline __u64 digest_pointers(const __u64 *pointers, __u32 n, __u32 except)
{
	__u64 digest = 0;

	for (__u32 i = 0; i < n; i++)
		if (i != except)
			digest = digest * 0x100000001b3 + pointers[i];
	return digest;
}

static __always_inline struct extended_key key_of_set(struct caller *caller, __u32 kind,
						      __u64 digest)
{
	struct extended_key key = {
		.incarnation = caller->incarnation,
		.digest = digest,
		.tgid = caller->tgid,
		.kind = kind,
	};

	return key;
}

/* Whether the function that a probe stands in was called through the object, as
 * what the probe takes it for. Which functions are probed, and as what, came from
 * the memory of some process, which may have lied: this process is asked. */
static __always_inline bool is_called(struct pt_regs *ctx, __u64 functions, __u64 cookie)
{
	__u64 pointer = 0;

	bpf_probe_read_user(&pointer, sizeof(pointer),
			    (void *)(functions + COOKIE_POINTER(cookie) * sizeof(pointer)));
	return pointer && pointer == IP(ctx) - COOKIE_INTO(cookie);
}

/* Scratch memory for what is too large for the stack. */
static __always_inline struct extended_set *fresh_set(void)
{
	struct thread *thread = this_thread();

	return thread ? &thread->set : NULL;
}

static __always_inline void tell_set(struct extended_key *key, struct extended_set *set)
{
	set->attached_ns = 0;
	set->refused = 0;
	set->library = 0;
	if (bpf_map_update_elem(&extended_sets, key, set, BPF_NOEXIST) == 0)
		tell(CONTROL_NEW_FUNCTIONS, key->tgid, key->incarnation);
	else if (!bpf_map_lookup_elem(&extended_sets, key))
		count(LOSS_FUNCTIONS_FULL);
}

/* Whether the functions of a combination are probed, or none of a provider. User
 * space is told of one that it does not know. */
static __always_inline bool is_known(struct caller *caller, __u32 kind, __u64 digest,
				     struct extended_set *fresh)
{
	struct extended_key key = key_of_set(caller, kind, digest);
	struct extended_set *known = bpf_map_lookup_elem(&extended_sets, &key);

	if (known)
		return known->attached_ns || known->refused == REFUSED_NO_OBJECT;
	if (admit_process(caller))
		tell_set(&key, fresh);
	return false;
}

/* Whether every function of the object is probed that may be called; so it is
 * when it has none. */
static __noinline bool is_qp_watched(struct caller *caller, __u64 qp, __u64 context)
{
	struct extended_set *fresh = fresh_set();

	if (!fresh || bpf_probe_read_user(fresh->pointers, sizeof(fresh->pointers),
					  (void *)(qp + IBV_QP_EX_FUNCTIONS)))
		return true;
	__u64 *p = fresh->pointers;
	if (!are_functions(context, p[QP_START], p[QP_COMPLETE], p[QP_ABORT]))
		return true;
	return is_known(caller, EXTENDED_QP, digest_pointers(p, QP_FUNCTIONS, QP_COMPLETE), fresh);
}

static __noinline bool is_cq_watched(struct caller *caller, __u64 cq, __u64 context)
{
	struct extended_set *fresh = fresh_set();

	if (!cq || !fresh)
		return true;
	__builtin_memset(fresh->pointers, 0, sizeof(fresh->pointers));
	__u64 *p = fresh->pointers;
	if (bpf_probe_read_user(p, CQ_FUNCTIONS * sizeof(*p), (void *)(cq + IBV_CQ_EX_FUNCTIONS)))
		return true;
	if (!are_functions(context, p[CQ_START_POLL], p[CQ_NEXT_POLL], p[CQ_END_POLL]))
		return true;
	return is_known(caller, EXTENDED_CQ, digest_pointers(p, CQ_FUNCTIONS, CQ_FUNCTIONS), fresh);
}

/* A QP of which not every function is probed as it becomes ready was not seen
 * from its start. Called after modified(); not static, to have a stack of
 * its own. */
__noinline int watch_functions(__u64 qp_address)
{
	struct caller caller = current_caller();
	struct ibv_qp_head qp;
	struct queue_key key = {};
	__u32 slot = 0;
	struct queue *queue = queue_at_address(qp_address, &key, &slot, &qp, &caller);

	if (!queue)
		return 0;
	bool posts = is_qp_watched(&caller, qp_address, qp.context);
	bool sends = is_cq_watched(&caller, qp.send_cq, qp.context);
	bool receives = qp.recv_cq == qp.send_cq || is_cq_watched(&caller, qp.recv_cq, qp.context);
	if (!posts || !sends || !receives)
		queue->aligned_ns = 0;
	return 0;
}
