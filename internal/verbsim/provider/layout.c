/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the table of functions that this file was compiled with the one that the
 * loaded libibverbs reads? The table is private and grows in the middle, and a
 * wrong one would make poll_cq a post_recv. So every slot of a scratch table
 * holds its own number, and where libibverbs copies the numbers is compared
 * with where the compiled slots are.
 */
#define _GNU_SOURCE
#include "sim.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* More slots than any release has (v65: 93). */
#define MARKERS 512

struct expectation {
	const char *name;
	size_t slot;  /* offset in the table */
	size_t where; /* offset in struct verbs_context of the copy */
};

#define VCTX(op) { #op, offsetof(struct verbs_context_ops, op), offsetof(struct verbs_context, op) }
#define CTX(op)                                                                                    \
	{ #op, offsetof(struct verbs_context_ops, op),                                             \
	  offsetof(struct verbs_context, context.ops.op) }
#define COMPAT(op)                                                                                 \
	{ #op, offsetof(struct verbs_context_ops, op),                                             \
	  offsetof(struct verbs_context, context.ops._compat_##op) }

/*
 * Every slot in use that libibverbs copies to a public place, and the
 * neighbours of the two that it copies to a private one (free_context,
 * query_port).
 */
static const struct expectation expectations[] = {
	COMPAT(alloc_pd),   COMPAT(create_ah),	   COMPAT(create_cq),	 COMPAT(create_qp),
	COMPAT(create_srq), COMPAT(dealloc_pd),	   COMPAT(dereg_mr),	 COMPAT(destroy_ah),
	COMPAT(destroy_cq), COMPAT(destroy_qp),	   COMPAT(destroy_srq),	 COMPAT(modify_qp),
	COMPAT(query_qp),   COMPAT(reg_mr),	   COMPAT(detach_mcast), VCTX(free_dm),
	VCTX(create_qp_ex), VCTX(query_device_ex), CTX(poll_cq),	 CTX(post_recv),
	CTX(post_send),	    CTX(post_srq_recv),	   CTX(req_notify_cq),
};

typedef void (*set_ops_fn)(struct verbs_context *, const void *);

static int compare(const struct verbs_context *vctx, char *err, size_t errlen)
{
	for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
		const struct expectation *e = &expectations[i];
		uintptr_t found = *(const uintptr_t *)((const char *)vctx + e->where);
		size_t want = e->slot / sizeof(void *) + 1;

		if (found == want)
			continue;
		snprintf(err, errlen,
			 "libibverbs reads the function %s from another slot of the provider's "
			 "table than slot %zu, for which this provider was compiled (struct "
			 "verbs_context_ops of rdma-core 44 to 56); build it against the installed "
			 "libibverbs",
			 e->name, want - 1);
		return -1;
	}
	return 0;
}

/* The scratch context is not closed with ibv_close_device: its functions are numbers. */
int sim_check_layout(struct ibv_device *device, char *err, size_t errlen)
{
	static_assert(MARKERS > sizeof(struct verbs_context_ops) / sizeof(void *), "too few "
										   "markers");
	uintptr_t table[MARKERS];
	struct sim_context *scratch;
	set_ops_fn set_ops;
	int ret;

	/*
	 * Looked up by name, and not called through the PLT: whoever reads this
	 * file for the tables it hands to verbs_set_ops shall find the real one only.
	 */
	set_ops = (set_ops_fn)dlvsym(RTLD_DEFAULT, "verbs_set_ops", SIM_PRIVATE_VERSION);
	if (!set_ops) {
		snprintf(err, errlen,
			 "no symbol verbs_set_ops@%s in the loaded libibverbs: rdma-core 34 to 56 "
			 "is "
			 "needed",
			 SIM_PRIVATE_VERSION);
		return -1;
	}
	scratch = _verbs_init_and_alloc_context(device, -1, sizeof(*scratch),
						&((struct sim_context *)NULL)->ibv_ctx, 0);
	if (!scratch) {
		snprintf(err, errlen, "_verbs_init_and_alloc_context: out of memory");
		return -1;
	}
	for (size_t i = 0; i < MARKERS; i++)
		table[i] = i + 1;
	set_ops(&scratch->ibv_ctx, table);
	ret = compare(&scratch->ibv_ctx, err, errlen);
	verbs_uninit_context(&scratch->ibv_ctx);
	free(scratch);
	return ret;
}
